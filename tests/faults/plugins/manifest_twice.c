/* SPDX-License-Identifier: MIT */
/* Two manifests. */
#define NO_PLUGIN
#define NAME "manifest_twice"
#include "minimal.h"

#define hw_manifest hw_manifest_too
HW_MANIFEST_("abi=1-1\nname=manifest_twice\n");
#undef hw_manifest
HW_MANIFEST_("abi=1-1\nname=manifest_twice\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
