/* SPDX-License-Identifier: MIT */
/* The entry returns an error with a message. */
#define NO_PLUGIN
#define NAME "entry_fails"
#include "minimal.h"

HW_MANIFEST_("abi=1-1\nname=" NAME "\n");

HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin)
{
    (void)fill, (void)plugin;
    return hw_fail(host, HW_INTERNAL, "no mood today");
}
