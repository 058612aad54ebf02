/* SPDX-License-Identifier: MIT */
/* Fails to open, with a message that is too long. */
#define NAME "open_endless_message"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    static char text[1 << 16];
    (void)self;
    memset(text, 'a', sizeof text - 1);
    return host->fail(host->instance, HW_DRIVER, text);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
