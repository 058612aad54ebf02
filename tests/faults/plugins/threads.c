/* SPDX-License-Identifier: MIT */
/* With memory of each thread's own that begins as zeros, by the linker gold where it is there. */
#define NAME "threads"
#define CHANGES
#include "minimal.h"

/* Asked for by section and offset, as memory that others may have as well is by name. */
static __thread char last[100] __attribute__((tls_model("global-dynamic")));

static void change(struct hw_plugin *table)
{
    last[table->size % sizeof last]++;
}
