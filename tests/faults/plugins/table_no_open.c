/* SPDX-License-Identifier: MIT */
/* A required slot is empty: the first one. */
#define NAME "table_no_open"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->open = NULL;
}
