/* SPDX-License-Identifier: MIT */
/* plugin_show.h - shows plugin files for any system. They are read, not loaded. */
#ifndef HW_TOOL_PLUGIN_SHOW_H
#define HW_TOOL_PLUGIN_SHOW_H

#include "tree.h"

/* Both print, and return the exit status. Libraries of a file for Windows or macOS are looked up in
 * the tree. */
int plugin_show(const char *path, const struct tree *tree);
/* Checks a file, or each file of a directory that is named like a plugin of some system. */
int plugin_check(const char *path, const struct tree *tree);

#endif
