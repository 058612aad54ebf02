/* SPDX-License-Identifier: MIT */
/* Has thread-local memory that begins as zeros; linked by gold if that is installed. */
#define NAME "threads"
#define CHANGES
#include "minimal.h"

/* Asked for by section and offset, as memory that others may have as well is by name. */
static __thread char last[100] __attribute__((tls_model("global-dynamic")));

static void change(struct hw_plugin *table)
{
    last[table->size % sizeof last]++;
}
