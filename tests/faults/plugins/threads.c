/* SPDX-License-Identifier: MIT */
/* Has zero-initialised thread-local memory; linked by gold if that is installed. */
#define NAME "threads"
#define CHANGES
#include "minimal.h"

/* A local symbol, which relocations refer to by section and offset instead of by name. */
static __thread char last[100] __attribute__((tls_model("global-dynamic")));

static void change(struct hw_plugin *table)
{
    last[table->size % sizeof last]++;
}
