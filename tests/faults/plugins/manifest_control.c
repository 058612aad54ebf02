/* SPDX-License-Identifier: MIT */
/* The manifest contains control characters. */
#define NO_PLUGIN
#define NAME "manifest_control"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=manifest_control\nvendor=\033[31mred\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
