/* SPDX-License-Identifier: MIT */
/* A required slot is empty: the last one. */
#define NAME "table_no_transfer"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->transfer = NULL;
}
