/* SPDX-License-Identifier: MIT */
/* Reports a missing driver, in the documented way. */
#define NAME  "open_no_driver"
#define LINES "remedy=Install nowhere\n"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    (void)self;
    return hw_fail(host, HW_NO_DEVICE, "libnowhere.so.1 is not installed");
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
