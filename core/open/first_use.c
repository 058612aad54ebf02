/* SPDX-License-Identifier: MIT */
/* first_use.c - the stage bind of a plugin whose devices are known from a verdict. The first thread
 * that uses one of the devices loads and starts the plugin. */
#define _POSIX_C_SOURCE 200809L
#include "open/first_use.h"

#include "base/message.h"
#include "load/bind.h"
#include "open/context.h"
#include "open/ladder.h"

#include <stdlib.h>
#include <string.h>

/* Reports the failure but leaves the plugin unbound, so that the next use tries again. */
static enum hw_status bind_put_off(struct candidate *again)
{
    const enum hw_status status =
        fail(HW_NO_MEMORY, "plugin %s (%s) cannot be loaded now: %s. Remedy: %s",
             again->name, again->path, message_of(again), reason_remedy(REASON_NO_MEMORY));
    candidate_free(again);
    return status;
}

static enum hw_status bind_locked(struct plugin *plugin)
{
    struct candidate *again = candidate_again(plugin->candidate);
    if (!again)
        return fail(HW_NO_MEMORY, "out of memory for plugin %s", plugin->candidate->path);
    plugin->binding = again;
    const uint32_t before = context_opening(plugin->context->generation);
    const bool good = climb_to_bind(plugin->context, again);
    context_opening(before);
    plugin->binding = plugin->candidate;
    if (!good)
        plugin_stop(plugin);
    if (!good && again->retryable)
        return bind_put_off(again);
    again->next = plugin->bind_results;
    plugin->bind_results = again;
    atomic_store(&plugin->latest, again);
    if (again->verdict)
        atomic_store(&plugin->verdict, again->verdict);
    atomic_store_explicit(&plugin->bound, good ? BOUND : BOUND_NEVER, memory_order_release);
    return HW_OK;
}

static enum hw_status bind_refused(const struct plugin *plugin)
{
    const struct candidate *latest = atomic_load(&plugin->latest);
    return fail(HW_NO_DEVICE, "plugin %s (%s) cannot be used: %s. Remedy: %s", latest->name,
                latest->path, message_of(latest), remedy_of(latest));
}

enum hw_status plugin_bind(struct plugin *plugin)
{
    enum hw_status status = HW_OK;
    if (plugin_is_bound(plugin))
        return HW_OK;
    pthread_mutex_lock(&plugin->context->binding);
    if (plugin->bound == BOUND_NOT_YET)
        status = bind_locked(plugin);
    if (!status && !plugin_is_bound(plugin))
        status = bind_refused(plugin);
    pthread_mutex_unlock(&plugin->context->binding);
    return status;
}
