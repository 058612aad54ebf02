/* SPDX-License-Identifier: MIT */
/* null.c - a plugin whose ops all return at once and compute nothing. `hw bench dispatch` uses it
 * to measure the library's cost per call, which a real plugin's work would hide. The name of its
 * one device says so, and the device is ranked last. */
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
