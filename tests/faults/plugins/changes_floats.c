/* SPDX-License-Identifier: MIT */
/* Changes the rounding mode of floating point. */
#define NAME "changes_floats"
#define CHANGES
#include "minimal.h"

#include <fenv.h>

static int32_t bad_open(const struct hw_host *host, void **self)
{
    fesetround(FE_UPWARD);
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
