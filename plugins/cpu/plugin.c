/* SPDX-License-Identifier: MIT */
/* The instance, and the table of functions. */
#include "cpu.h"
#include "pack.h"

#include <build_stamp.h>
#include <stdlib.h>

int32_t plugin_open(const struct hw_host *host, void **self)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);
    if (!plugin)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    plugin->host = host;
    machine_read(&plugin->machine, "");
    *self = plugin;
    return HW_OK;
}

void plugin_close(void *self)
{
    free(self);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->vendor = "";
    table->version = HW_BUILD_STAMP;
    slots_fill(table);
    slots_fill_events(table);
    slots_fill_graphs(table);
    slots_fill_plans(table);
    table->buffer_import = memory_import;
    table->pack_size = pack_size;
    table->pack = pack_weights;
    return HW_OK;
}

HW_PLUGIN("cpu", "title=CPU\nrank=90\nbuild=" HW_BUILD_STAMP "\n", fill)
