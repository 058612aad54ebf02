/* SPDX-License-Identifier: MIT */
/* load.h - the stage bind: a plugin into the process, and out of use. */
#ifndef HW_OPEN_LOAD_H
#define HW_OPEN_LOAD_H

#include "open/candidate.h"

bool load(struct hw_context *context, struct candidate *candidate);
/* Closes the plugin; its library stays in the process. */
void plugin_close(struct plugin *plugin);

#endif
