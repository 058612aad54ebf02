/* SPDX-License-Identifier: MIT */
/* An ordinary shared object: it exports a symbol, but no entry. */
#include <hw/plugin.h>

HW_MANIFEST_("abi=1-1\nname=no_entry\n");

__attribute__((visibility("default"))) int hw_plugin_other(void);

int hw_plugin_other(void)
{
    return 0;
}
