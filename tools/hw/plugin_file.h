/* SPDX-License-Identifier: MIT */
/* plugin_file.h - mistakes in a plugin file that do not keep the library from loading it. */
#ifndef HW_TOOL_PLUGIN_FILE_H
#define HW_TOOL_PLUGIN_FILE_H

#include <jansson.h>

/* A new array of the names that the file exports besides hw_plugin_entry; empty if its symbol table
 * cannot be read. */
json_t *extra_exports(const char *path);

/* A new array of the names by which the file links the library: none, or "libhw.so.0". */
json_t *linked_library(const char *path);

/* A new array of the keys in the file's manifest that this version does not know. They may belong
 * to a later version, but are mostly misspelt. */
json_t *unknown_keys(const char *path);

#endif
