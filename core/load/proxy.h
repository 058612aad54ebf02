/* SPDX-License-Identifier: MIT */
/* proxy.h - loads a proxy in place of a plugin: hw_worker.so for a plugin that HW_WORKER names; and
 * hw_shadow.so for HW_SHADOW. */
#ifndef HW_LOAD_PROXY_H
#define HW_LOAD_PROXY_H

#include "base/json.h"
#include "open/candidate.h"

/* Whether HW_WORKER names this backend; then sets the seconds that one call may take
 * (open/select.c). */
bool runs_out_of_process(const struct hw_context *context, const char *name,
                         uint32_t *seconds);
/* Loads the proxy, which starts the plugin in a process of its own and fills the table; table->size
 * is set already. On an error, stops the candidate and returns false. */
bool proxy_enter(struct plugin *plugin, struct hw_plugin *table);
/* Releases the proxy, if there is one. */
void proxy_release(struct plugin *plugin);
/* Writes "worker": the process and its state; null if HW_WORKER does not name the plugin, which may
 * be NULL. */
void proxy_explain(struct json *json, const struct plugin *plugin);

/* Loads hw_shadow.so, and sets context->shadow. */
enum hw_status shadow_load(struct hw_context *context);

#endif
