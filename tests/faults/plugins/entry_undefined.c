/* SPDX-License-Identifier: MIT */
/* The entry is used but defined nowhere. */
int hw_plugin_entry(void);
__attribute__((visibility("default"))) int hw_plugin_other(void);

int hw_plugin_other(void)
{
    return hw_plugin_entry();
}
