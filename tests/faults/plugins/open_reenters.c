/* SPDX-License-Identifier: MIT */
/* Opens a context while it is being opened: that call fails, and the plugin is used. */
#define _GNU_SOURCE
#define NAME "open_reenters"
#define CHANGES
#include "minimal.h"

#include <dlfcn.h>

static int32_t reenter(const struct hw_host *host, void **self)
{
    int32_t (*open_fn)(const void *options, void **context);
    void *context = NULL;
    *(void **)&open_fn = dlsym(RTLD_DEFAULT, "hw_open");
    if (!open_fn || open_fn(NULL, &context) != HW_INVALID || context)
        return hw_fail(host, HW_INTERNAL, "a context was opened in a context");
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = reenter;
}
