/* SPDX-License-Identifier: MIT */
/* It states the sizes of more ops than there can be. */
#define NAME "op_count"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->op_count = 1000000;
}
