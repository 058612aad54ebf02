/* SPDX-License-Identifier: MIT */
/* The table states an ABI version that was not negotiated. */
#define NAME "table_abi"
#define CHANGES
#include "minimal.h"

static void change(struct hw_plugin *table)
{
    table->abi = 9;
}
