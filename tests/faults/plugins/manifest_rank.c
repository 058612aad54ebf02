/* SPDX-License-Identifier: MIT */
/* The rank is not a number. */
#define NO_PLUGIN
#define NAME "manifest_rank"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=manifest_rank\nrank=first\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
