/* SPDX-License-Identifier: MIT */
/* A shared object like any other: it exports something, and no entry. */
__attribute__((visibility("default"))) int hw_plugin_other(void);

int hw_plugin_other(void)
{
    return 0;
}
