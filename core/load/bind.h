/* SPDX-License-Identifier: MIT */
/* bind.h - the stage bind: loads a plugin into the process. */
#ifndef HW_LOAD_BIND_H
#define HW_LOAD_BIND_H

#include "open/candidate.h"

/* Makes a plugin that is not loaded yet. Stops the candidate and returns NULL if memory runs
 * out. */
struct plugin *plugin_create(struct hw_context *context, struct candidate *candidate);
/* Loads candidate->plugin. */
bool plugin_load(struct hw_context *context, struct candidate *candidate);
/* Closes the plugin; its library stays loaded. Afterwards the plugin can only be freed. */
void plugin_stop(struct plugin *plugin);
/* Closes and frees the plugin. */
void plugin_close(struct plugin *plugin);

#endif
