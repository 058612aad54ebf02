/* SPDX-License-Identifier: MIT */
/* A line of the manifest is not key=value. */
#define NO_PLUGIN
#define NAME "manifest_garbage"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=manifest_garbage\nHello, world.\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
