/* SPDX-License-Identifier: MIT */
/* The manifest does not state ABI versions. */
#define NO_PLUGIN
#define NAME "manifest_no_abi"
#include "minimal.h"

HW_MANIFEST_("name=manifest_no_abi\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
