/* SPDX-License-Identifier: MIT */
/* The table states another name than the manifest. */
#define NAME "table_name"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->name = "somebody_else";
}
