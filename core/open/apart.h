/* SPDX-License-Identifier: MIT */
/* apart.h - the stage bind of a plugin that HW_WORKER names: it is loaded in a process of its own,
 * by the program hw-worker (tools/worker). */
#ifndef HW_OPEN_APART_H
#define HW_OPEN_APART_H

#include "base/json.h"
#include "open/candidate.h"

/* Whether HW_WORKER names this backend (open/select.c). */
bool is_apart(const struct hw_context *context, const char *name);
/* Starts the process, in which the plugin is loaded and started, and fills the table, whose size
 * is set, as the plugin's entry would. Otherwise stops the candidate. */
bool apart_start(struct plugin *plugin, struct hw_plugin *table);
/* "worker": its process and state; null if the plugin is not apart, or NULL. */
void apart_explain(struct json *json, const struct plugin *plugin);
/* Ends the process, if there is one. */
void apart_end(struct plugin *plugin);
/* Frees what is left of it, which the table points to. */
void apart_free(struct plugin *plugin);

#endif
