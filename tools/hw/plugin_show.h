/* SPDX-License-Identifier: MIT */
/* plugin_show.h - what a plugin file is, for any system: read, not loaded. */
#ifndef HW_TOOL_PLUGIN_SHOW_H
#define HW_TOOL_PLUGIN_SHOW_H

#include "tree.h"

/* Both print, and return the exit status. The libraries of a file for Windows or macOS are looked
 * for in the tree. */
int plugin_show(const char *path, const struct tree *tree);
/* Of a file, or of each file in a directory that is named like a plugin of some system. */
int plugin_check(const char *path, const struct tree *tree);

#endif
