/* SPDX-License-Identifier: MIT */
/* A function that no library has. */
#define NAME "symbol_undefined"
#define CHANGES
#include "minimal.h"

extern void hw_nobody_has_this(void *self);

static void change(struct hw_plugin *table)
{
    table->close = hw_nobody_has_this;
}
