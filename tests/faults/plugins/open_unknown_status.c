/* SPDX-License-Identifier: MIT */
/* Returns a status that this host does not know. */
#define NAME "open_unknown_status"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    (void)self;
    return hw_fail(host, 4711, "a status of a later version");
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
