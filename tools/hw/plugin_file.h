/* SPDX-License-Identifier: MIT */
/* plugin_file.h - what may be wrong with a plugin file that the library loads all the same. */
#ifndef HW_TOOL_PLUGIN_FILE_H
#define HW_TOOL_PLUGIN_FILE_H

#include <jansson.h>

/* A new array of the names that the file exports, without hw_plugin_entry; empty if its table of
 * symbols cannot be read. */
json_t *extra_exports(const char *path);

/* A new array of the keys in the file's manifest that this version does not know. A later
 * version may know them, but mostly they are misspelt. */
json_t *unknown_keys(const char *path);

#endif
