/* SPDX-License-Identifier: MIT */
/* load.h - the stage bind: loads a plugin into the process. */
#ifndef HW_OPEN_LOAD_H
#define HW_OPEN_LOAD_H

#include "open/candidate.h"

bool load(struct hw_context *context, struct candidate *candidate);
/* Closes the plugin; its library stays loaded. */
void plugin_close(struct plugin *plugin);

#endif
