/* SPDX-License-Identifier: MIT */
/* The size of its op table ends inside a slot. */
#define NAME "ops_half"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = offsetof(struct hw_plugin_ops, rope) +
                                                      sizeof ops.rope / 2 };
    table->ops = &ops;
}
