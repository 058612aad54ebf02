/* SPDX-License-Identifier: MIT */
/* Writes past the end of the host's table. */
#define NO_PLUGIN
#define NAME "table_overrun"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    int32_t status = hw_plugin_enter_(host, plugin, NAME, fill);
    memset(plugin + 1, 0, 64);
    return status;
}
