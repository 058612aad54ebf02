/* SPDX-License-Identifier: MIT */
/* The entry exists but is not exported. */
#define hw_plugin_entry hw_plugin_entry_of_header
#include <hw/plugin.h>
#undef hw_plugin_entry

HW_MANIFEST_("abi=1-1\nname=entry_hidden\n");

__attribute__((visibility("hidden"), used)) int hw_plugin_entry(void);

int hw_plugin_entry(void)
{
    return 0;
}
