/* SPDX-License-Identifier: MIT */
/* Calls a function that no library defines. */
#define NAME "symbol_undefined"
#define CHANGES
#include "minimal.h"

extern void hw_nobody_has_this(void *self);

static void change(struct hw_plugin *table)
{
    table->close = hw_nobody_has_this;
}
