/* SPDX-License-Identifier: MIT */
/* exports.h - what a plugin file exports besides its entry. */
#ifndef HW_TOOL_EXPORTS_H
#define HW_TOOL_EXPORTS_H

#include <jansson.h>

/* A new array of the names that the file exports, without hw_plugin_entry; empty if its table of
 * symbols cannot be read. */
json_t *extra_exports(const char *path);

#endif
