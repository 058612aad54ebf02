/* SPDX-License-Identifier: MIT */
/* far.c - a plugin for other systems and processors, which make.sh builds for each of them. It is
 * only read, never loaded, and calls nothing. */
#include <hw/plugin.h>

/* Functions of other libraries that it needs: X(name) for each. */
#ifdef NEEDS
#define X(name) extern void name(void);
NEEDS
#undef X
__attribute__((used)) static void (*const needed[])(void) = {
#define X(name) name,
    NEEDS
#undef X
};
#endif

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    (void)table;
    return HW_UNSUPPORTED;
}

HW_PLUGIN("far", "title=Far away\nvendor=Nobody\nrank=70\nneeds=libfar.so.1\nbuild=far\n",
          fill)
