/* SPDX-License-Identifier: MIT */
/* Fails to open, without a message. */
#define NAME "open_mute"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    (void)host, (void)self;
    return HW_DRIVER;
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
