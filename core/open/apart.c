/* SPDX-License-Identifier: MIT */
/* apart.c - a plugin in a process of its own: starts hw-worker, and makes a table from its report
 * about the plugin. Everything in the report is checked before it is used: the devices by the
 * reader of verdicts, the rest like the table of any plugin (load.c). */
#define _POSIX_C_SOURCE 200809L
#include "open/apart.h"

#include "open/child.h"
#include "open/verdict.h"
#include "worker/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take_devices(struct worker *worker, const struct verdict *verdict)
{
    worker->devices = calloc(verdict->device_count + 1, sizeof *worker->devices);
    if (!worker->devices)
        return false;
    worker->device_count = verdict->device_count;
    for (uint32_t i = 0; i < verdict->device_count; i++)
        worker->devices[i] = verdict->devices[i].info;
    return true;
}

/* Takes copies, which the worker cannot change any more. */
static void take_words(struct worker *worker, const struct verdict *verdict,
                       struct hw_plugin *table)
{
    const struct wire_table said = worker->wire->table;
    worker->id = worker->wire->process;
    memcpy(worker->vendor, said.vendor, sizeof worker->vendor);
    worker->vendor[sizeof worker->vendor - 1] = '\0';
    snprintf(worker->version, sizeof worker->version, "%s", verdict->version);
    table->vendor = worker->vendor;
    table->version = worker->version;
    table->abi = said.abi;
    table->op_count = said.op_count < HW_OP_COUNT ? said.op_count : HW_OP_COUNT;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const uint32_t own = op_rows[op].size, its = said.op_sizes[op];
        worker->op_sizes[op] = its; /* load.c checks it */
        worker->op_bytes[op] = op < table->op_count && its > own ? its : own;
    }
}

/* Needed for a plugin that was not tried before: the list is not in a verdict yet. */
static void take_left_out(struct candidate *candidate, struct verdict *verdict)
{
    left_out_free(candidate->left_out, candidate->left_out_count);
    candidate->left_out = verdict->left_out;
    candidate->left_out_count = verdict->left_out_count;
    verdict->left_out = NULL;
    verdict->left_out_count = 0;
}

bool apart_start(struct plugin *plugin, struct hw_plugin *table)
{
    struct candidate *candidate = plugin->binding;
    struct kept kept = { .file = -1 };
    apart_free(plugin); /* frees the worker of an earlier start */
    struct worker *worker = worker_create(plugin, &kept.file);
    if (!worker)
        return stop(candidate, REASON_NO_MEMORY,
                    "memory cannot be shared with its process (HW_WORKER): %s",
                    strerror(errno));
    bool good = child_keep(plugin->context, candidate, &kept);
    close(kept.file);
    if (good) {
        worker->process = kept.process;
        take_words(worker, kept.verdict, table);
        take_left_out(candidate, kept.verdict);
        table->name = plugin->candidate->name;
        remote_fill(worker, table, kept.verdict->ops);
        good = take_devices(worker, kept.verdict) ||
               stop(candidate, REASON_NO_MEMORY, NULL);
        verdict_free(kept.verdict);
        free(kept.verdict);
    }
    plugin->worker = worker;
    if (!good)
        apart_end(plugin);
    return good;
}

void apart_explain(struct json *json, const struct plugin *plugin)
{
    if (!plugin || !plugin->apart) {
        json_string(json, "worker", NULL);
        return;
    }
    struct worker *worker = plugin_is_bound(plugin) ? plugin->worker : NULL;
    const bool ended = worker && worker_look(worker);
    json_open(json, "worker", '{');
    json_string(json, "state", ended ? "ended" : worker ? "running" : "not started");
    json_number(json, "process", worker ? (uint64_t)worker->id : 0);
    json_string(json, "why", ended ? worker->why : NULL);
    json_close(json, '}');
}

void apart_end(struct plugin *plugin)
{
    if (plugin->worker)
        worker_end(plugin->worker);
}

void apart_free(struct plugin *plugin)
{
    worker_destroy(plugin->worker);
    plugin->worker = NULL;
}

const char *plugin_ended(const struct plugin *plugin)
{
    const struct worker *worker = plugin->worker;
    return worker && atomic_load(&worker->ended) ? worker->why : NULL;
}
