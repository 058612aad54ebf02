/* SPDX-License-Identifier: MIT */
/* Refuses to start; its message contains its cache directory. */
#define NAME "caches"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    (void)self;
    return hw_fail(host, HW_DRIVER, "[%s]", host->cache_dir);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
