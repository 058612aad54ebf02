/* SPDX-License-Identifier: MIT */
/* Changes the locale. */
#define NAME "changes_locale"
#define CHANGES
#include "minimal.h"

#include <locale.h>

static int32_t bad_open(const struct hw_host *host, void **self)
{
    setlocale(LC_ALL, "C.UTF-8");
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
