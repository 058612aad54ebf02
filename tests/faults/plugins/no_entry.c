/* SPDX-License-Identifier: MIT */
/* An ordinary shared object: it exports a symbol, but no entry. */
__attribute__((visibility("default"))) int hw_plugin_other(void);

int hw_plugin_other(void)
{
    return 0;
}
