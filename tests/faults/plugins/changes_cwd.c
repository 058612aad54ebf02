/* SPDX-License-Identifier: MIT */
/* Changes the working directory. */
#define _POSIX_C_SOURCE 200809L
#define NAME            "changes_cwd"
#define CHANGES
#include "minimal.h"

#include <unistd.h>

static int32_t bad_open(const struct hw_host *host, void **self)
{
    if (chdir("/"))
        return HW_IO;
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
