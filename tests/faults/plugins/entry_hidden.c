/* SPDX-License-Identifier: MIT */
/* The entry exists but is not exported. */
__attribute__((visibility("hidden"), used)) int hw_plugin_entry(void);

int hw_plugin_entry(void)
{
    return 0;
}
