/* SPDX-License-Identifier: MIT */
/* No table of ops. */
#define NAME "table_no_ops"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->ops = NULL;
}
