/* SPDX-License-Identifier: MIT */
/* The size of its op table is impossible. */
#define NAME "ops_size"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = 3 };
    table->ops = &ops;
}
