/* SPDX-License-Identifier: MIT */
/* Finds no device, and sets a remedy of its own because the manifest's would not help. */
#define NAME  "open_own_remedy"
#define LINES "remedy=Install nowhere\n"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    (void)self;
    return hw_fail(host, HW_NO_DEVICE, "NOWHERE names no file\ncorrect NOWHERE");
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
