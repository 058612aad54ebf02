/* SPDX-License-Identifier: MIT */
/* load.h - the stage bind: loads a plugin into the process. */
#ifndef HW_OPEN_LOAD_H
#define HW_OPEN_LOAD_H

#include "open/candidate.h"

/* Makes a plugin that is not loaded yet. Stops the candidate and returns NULL if memory runs
 * out. */
struct plugin *plugin_create(struct hw_context *context, struct candidate *candidate);
/* Loads candidate->plugin. */
bool load(struct hw_context *context, struct candidate *candidate);
/* Closes the plugin; its library stays loaded. Afterwards the plugin can only be freed. */
void plugin_stop(struct plugin *plugin);
/* Closes and frees the plugin. */
void plugin_close(struct plugin *plugin);

#endif
