/* SPDX-License-Identifier: MIT */
/* The manifest is empty. */
#define NO_PLUGIN
#define NAME "manifest_empty"
#include "minimal.h"

HW_MANIFEST_("");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    return hw_plugin_enter_(host, plugin, NAME, fill);
}
