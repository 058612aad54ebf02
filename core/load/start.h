/* SPDX-License-Identifier: MIT */
/* start.h - starts a plugin and lists its devices. */
#ifndef HW_LOAD_START_H
#define HW_LOAD_START_H

#include "open/candidate.h"

/* Starts candidate->plugin, which is loaded already. */
bool plugin_start(struct hw_context *context, struct candidate *candidate);
/* Lists the devices in the plugin's verdict. Does not run the plugin. */
bool list_known(struct plugin *plugin);

#endif
