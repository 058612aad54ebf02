/* SPDX-License-Identifier: MIT */
/* A table of an earlier version, which ends after the required slots: it is used. */
#define NO_PLUGIN
#define NAME "table_older"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    uint32_t room = (uint32_t)(offsetof(struct hw_plugin, event_create));
    plugin->size = room;
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
