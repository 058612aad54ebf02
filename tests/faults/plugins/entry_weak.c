/* SPDX-License-Identifier: MIT */
/* The entry is weak: load order would decide which library's entry runs. */
#define NO_PLUGIN
#define NAME "entry_weak"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

__attribute__((weak)) HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host,
                                                        struct hw_plugin *plugin)
{
    return fill(host, plugin);
}
