/* SPDX-License-Identifier: MIT */
/* States the sizes of more ops than the limit. */
#define NAME "op_count"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->op_count = 1000000;
}
