/* SPDX-License-Identifier: MIT */
/* The size of its table ends inside a slot. */
#define NAME "table_half"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->size = offsetof(struct hw_plugin, supports) + sizeof table->supports / 2;
}
