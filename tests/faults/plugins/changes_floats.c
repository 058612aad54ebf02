/* SPDX-License-Identifier: MIT */
/* It changes the rounding of floats. */
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
