/* SPDX-License-Identifier: MIT */
/* The table answers an ABI version that nobody agreed on. */
#define NAME "table_abi"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->abi = 9;
}
