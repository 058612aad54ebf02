/* SPDX-License-Identifier: MIT */
/* States impossible sizes of ops. */
#define NAME "op_sizes"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    static const uint32_t sizes[HW_OP_COUNT];
    table->op_sizes = sizes;
}
