/* SPDX-License-Identifier: MIT */
/* It asks for a helper program, which this host does not run: it is used. */
#define NAME "open_spawns"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    struct hw_spawn spawn = { .size = sizeof spawn };
    if (host->spawn(host->instance, &spawn) != HW_UNSUPPORTED)
        return HW_INTERNAL;
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
