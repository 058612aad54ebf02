/* SPDX-License-Identifier: MIT */
/* It states sizes of ops that can not be. */
#define NAME "op_sizes"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    static const uint32_t sizes[HW_OP_COUNT];
    table->op_sizes = sizes;
}
