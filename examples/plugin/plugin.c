/* SPDX-License-Identifier: MIT */
/* plugin.c - the instance, and the table of what the plugin does. */
#include "discrete.h"

#include <stdlib.h>

int32_t plugin_open(const struct hw_host *host, void **out)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    instance->host = host;
    *out = instance;
    return HW_OK;
}

void plugin_close(void *instance)
{
    free(instance);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->vendor = "none";
    table->version = "1";
    slots_fill(table);
    slots_fill_events(table);
    slots_fill_graphs(table);
    table->pack_size = pack_size;
    table->pack = pack;
    table->extension = extension_row;
    return HW_OK;
}

HW_PLUGIN("discrete", "title=Discrete test device\nvendor=none\nrank=95\n", fill)
