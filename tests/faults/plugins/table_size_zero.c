/* SPDX-License-Identifier: MIT */
/* The table states a size of zero. */
#define NO_PLUGIN
#define NAME "table_size_zero"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    int32_t status = hw_plugin_enter_(host, plugin, NAME, fill);
    plugin->size = 0;
    return status;
}
