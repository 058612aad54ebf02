/* SPDX-License-Identifier: MIT */
/* The entry is used but defined nowhere. */
#define hw_plugin_entry hw_plugin_entry_of_header
#include <hw/plugin.h>
#undef hw_plugin_entry

HW_MANIFEST_("abi=1-1\nname=entry_undefined\n");

int hw_plugin_entry(void);
__attribute__((visibility("default"))) int hw_plugin_other(void);

int hw_plugin_other(void)
{
    return hw_plugin_entry();
}
