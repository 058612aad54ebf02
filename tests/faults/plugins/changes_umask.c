/* SPDX-License-Identifier: MIT */
/* Changes which rights new files have. */
#define NAME "changes_umask"
#define CHANGES
#include "minimal.h"

#include <sys/stat.h>

static int32_t bad_open(const struct hw_host *host, void **self)
{
    umask(0777);
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
