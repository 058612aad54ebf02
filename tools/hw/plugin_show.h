/* SPDX-License-Identifier: MIT */
/* plugin_show.h - what a plugin file is, for any system: read, not loaded. */
#ifndef HW_TOOL_PLUGIN_SHOW_H
#define HW_TOOL_PLUGIN_SHOW_H

/* Both print, and return the exit status. */
int plugin_show(const char *path);
/* Of a file, or of each file in a directory that is named like a plugin of some system. */
int plugin_check(const char *path);

#endif
