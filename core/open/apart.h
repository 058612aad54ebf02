/* SPDX-License-Identifier: MIT */
/* apart.h - the stage bind of a plugin that HW_WORKER names: the program hw-worker (tools/worker)
 * loads the plugin in a process of its own. */
#ifndef HW_OPEN_APART_H
#define HW_OPEN_APART_H

#include "base/json.h"
#include "open/candidate.h"

/* Whether HW_WORKER names this backend (open/select.c). */
bool is_apart(const struct hw_context *context, const char *name);
/* Starts the worker process, which loads and starts the plugin. Fills the table like the plugin's
 * entry; table->size is set already. On an error, stops the candidate and returns false. */
bool apart_start(struct plugin *plugin, struct hw_plugin *table);
/* Writes "worker": the process and its state; null if the plugin is NULL or not apart. */
void apart_explain(struct json *json, const struct plugin *plugin);
/* Ends the process, if there is one. */
void apart_end(struct plugin *plugin);
/* Frees the worker, which the table points to. */
void apart_free(struct plugin *plugin);

#endif
