/* SPDX-License-Identifier: MIT */
/* Serves only ABI versions that do not exist yet. */
#define NO_PLUGIN
#define NAME "abi_newer"
#include "minimal.h"

HW_MANIFEST_("abi=7-9\nname=abi_newer\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
