/* SPDX-License-Identifier: MIT */
/* Changes an existing environment variable. */
#define _POSIX_C_SOURCE 200809L
#define NAME            "changes_environment"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    setenv("PATH", "/nonexistent", 1);
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
