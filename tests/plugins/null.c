/* SPDX-License-Identifier: MIT */
/* null.c - a plugin whose every op answers at once and computes nothing. Not for results: it
 * is what `hw bench dispatch` measures the library against, where a plugin's own work would
 * drown what a call costs. Its one device says so in its name, and is chosen after all others. */
#define NAME   "null"
#define LINES  "vendor=nobody\nrank=99\n"
#define DEVICE "Null device, computes nothing"
#define CHANGES
#include "minimal.h"

#define X(NAME, name)                                                                      \
    static int32_t null_##name(void *device, void *queue, const struct hw_##name *op)      \
    {                                                                                      \
        (void)device, (void)queue, (void)op;                                               \
        return HW_OK;                                                                      \
    }
HW_OPS(X)
#undef X

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops,
#define X(NAME, name) .name = null_##name,
                                              HW_OPS(X)
#undef X
    };
    table->ops = &ops;
}
