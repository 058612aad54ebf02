/* SPDX-License-Identifier: MIT */
/* Adds an environment variable, as run-time libraries do to find themselves. */
#define _POSIX_C_SOURCE 200809L
#define NAME            "adds_variable"
#define CHANGES
#include "minimal.h"

static int32_t more_open(const struct hw_host *host, void **self)
{
    setenv("RUN_TIME_WAS_HERE", "1", 1);
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = more_open;
}
