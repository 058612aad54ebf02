/* SPDX-License-Identifier: MIT */
/* far.c - a plugin for other systems and processors, which make.sh builds for each of them. It is
 * only read, never loaded, and calls nothing. */
#include <hw/plugin.h>

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    (void)table;
    return HW_UNSUPPORTED;
}

HW_PLUGIN("far", "title=Far away\nvendor=Nobody\nrank=70\nneeds=libfar.so.1\nbuild=far\n",
          fill)
