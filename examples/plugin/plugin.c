/* SPDX-License-Identifier: MIT */
/* plugin.c - the instance, and the table of what the plugin does. */
#include "discrete.h"

#include <stdlib.h>

static int32_t plugin_open(const struct hw_host *host, void **out)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    instance->host = host;
    *out = instance;
    return HW_OK;
}

static void plugin_close(void *instance)
{
    free(instance);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const uint32_t sizes[] = HW_OP_SIZES;
    (void)host;
    table->vendor = "none";
    table->version = "1";
    table->ops = &launch_ops;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = plugin_close;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = device_close;
    table->queue_open = queue_open;
    table->queue_close = queue_close;
    table->queue_wait = queue_wait;
    table->buffer_alloc = memory_alloc;
    table->buffer_free = memory_free;
    table->transfer = memory_transfer;
    table->event_create = event_create;
    table->event_destroy = event_destroy;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_sync = event_sync;
    table->event_query = event_query;
    table->event_callback = event_callback;
    table->event_elapsed = event_elapsed;
    table->supports = launch_supports;
    table->kernel_info = device_kernel;
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
    table->pack_size = pack_size;
    table->pack = pack;
    table->extension = extension_row;
    return HW_OK;
}

HW_PLUGIN("discrete", "title=Discrete test device\nvendor=none\nrank=95\n", fill)
