/* SPDX-License-Identifier: MIT */
/* Its table has the right size, names and versions; all functions are garbage. */
#define NAME "table_garbage"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    const size_t first = offsetof(struct hw_plugin, open);
    memset((char *)table + first, 0x5a, sizeof *table - first);
}
