/* SPDX-License-Identifier: MIT */
/* The name in the table is not terminated. */
#define NAME "table_name_endless"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    static char name[64];
    memset(name, 'a', sizeof name);
    table->name = name;
}
