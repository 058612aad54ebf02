/* SPDX-License-Identifier: MIT */
/* Has an entry but no manifest. */
#define NO_PLUGIN
#define NAME "manifest_none"
#include "minimal.h"

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
