/* SPDX-License-Identifier: MIT */
/* Serves this ABI version and many later ones: it is used. */
#define NO_PLUGIN
#define NAME "abi_wide"
#include "minimal.h"

HW_MANIFEST_("abi=1-9\nname=abi_wide\nkey-of-a-later-version=x\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
