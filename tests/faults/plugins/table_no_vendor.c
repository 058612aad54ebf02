/* SPDX-License-Identifier: MIT */
/* A required string is missing. */
#define NAME "table_no_vendor"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->vendor = NULL;
}
