/* SPDX-License-Identifier: MIT */
/* Needs a library outside the dynamic loader's search path. The application has loaded it by its
 * path. */
#define NAME "needs_bundled"
#define CHANGES
#include "minimal.h"

int32_t bundled_answer(void);

static int32_t open_here(const struct hw_host *host, void **self)
{
    return bundled_answer() == 42 ? plugin_open(host, self) : HW_DRIVER;
}

static void change(struct hw_plugin *table)
{
    table->open = open_here;
}
