/* SPDX-License-Identifier: MIT */
/* A table of a later version, with slots that this host does not know: it is used. */
#define NO_PLUGIN
#define NAME "table_newer"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    struct {
        struct hw_plugin known;
        void (*later[16])(void);
    } table;
    memset(&table, 0, sizeof table);
    table.known.abi = HW_ABI_VERSION;
    table.known.name = NAME;
    fill(host, &table.known);
    table.later[0] = (void (*)(void))hw_plugin_entry;
    table.known.size = plugin->size;
    memcpy(plugin, &table, plugin->size);
    return HW_OK;
}
