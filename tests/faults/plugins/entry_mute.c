/* SPDX-License-Identifier: MIT */
/* The entry returns success and does nothing. */
#define NO_PLUGIN
#define NAME "entry_mute"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    (void)fill, (void)host, (void)plugin;
    return HW_OK;
}
