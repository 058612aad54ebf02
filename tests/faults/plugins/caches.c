/* SPDX-License-Identifier: MIT */
/* Cannot start, and says which directory it may cache in. */
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
