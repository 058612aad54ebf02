/* SPDX-License-Identifier: MIT */
/* The table has no op table. */
#define NAME "table_no_ops"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->ops = NULL;
}
