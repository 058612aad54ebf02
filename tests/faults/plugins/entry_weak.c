/* SPDX-License-Identifier: MIT */
/* The entry is weak: which library's it would be is an accident of order. */
#define NO_PLUGIN
#define NAME "entry_weak"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

__attribute__((weak)) HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host,
                                                        struct hw_plugin *plugin)
{
    return fill(host, plugin);
}
