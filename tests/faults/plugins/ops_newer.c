/* SPDX-License-Identifier: MIT */
/* An op table of a later version: it is used. */
#define NAME "ops_newer"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    static struct {
        struct hw_plugin_ops known;
        void (*later[8])(void);
    } ops;
    static uint32_t sizes[HW_OP_COUNT + 8];
    static const uint32_t known[] = HW_OP_SIZES;
    memcpy(sizes, known, sizeof known);
    ops.known.size = sizeof ops;
    table->ops = &ops.known;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT + 8;
}
