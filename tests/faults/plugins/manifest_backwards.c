/* SPDX-License-Identifier: MIT */
/* The range of ABI versions ends before it begins. */
#define NO_PLUGIN
#define NAME "manifest_backwards"
#include "minimal.h"

HW_MANIFEST_("abi=9-7\nname=manifest_backwards\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
