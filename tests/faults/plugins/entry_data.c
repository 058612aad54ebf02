/* SPDX-License-Identifier: MIT */
/* The entry is a variable. */
#define hw_plugin_entry hw_plugin_entry_of_header
#include <hw/plugin.h>
#undef hw_plugin_entry

HW_MANIFEST_("abi=1-1\nname=entry_data\n");

__attribute__((visibility("default"))) int hw_plugin_entry = 1;
