/* SPDX-License-Identifier: MIT */
/* Fails to open, with a message. */
#define NAME "open_fails"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    (void)self;
    return hw_fail(host, HW_DRIVER, "the vendor says 42");
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
