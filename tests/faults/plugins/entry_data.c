/* SPDX-License-Identifier: MIT */
/* The entry is a variable. */
__attribute__((visibility("default"))) int hw_plugin_entry = 1;
