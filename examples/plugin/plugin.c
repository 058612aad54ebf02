/* SPDX-License-Identifier: MIT */
/* plugin.c - the instance, its devices, and the table of what the plugin does. */
#include "discrete.h"

#include <stdlib.h>

#define DEVICES  2
#define FAR_MOST (UINT64_C(48) << 20) /* the second one's buffers: bytes, and alignment */

int32_t device_lost(const struct device *device)
{
    return hw_fail(device->instance->host, HW_LOST, "the test device was lost on request");
}

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

static int32_t device_count(void *instance, int32_t *count)
{
    (void)instance;
    *count = DEVICES;
    return HW_OK;
}

/* Facts are read from the device, and asked for anew each time. A UUID tells the two apart:
 * they have no PCI address. */
static int32_t device_info(void *instance, int32_t index, struct hw_device_info *info)
{
    (void)instance;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_DISCRETE;
    strcpy(facts.name, "Test device with separate memory");
    strcpy(facts.vendor, "none");
    strcpy(facts.arch, "test");
    facts.memory_total = MEMORY_BYTES;
    facts.units = 1;
    facts.has_uuid = 1;
    facts.uuid[0] = 0xd1;
    facts.uuid[15] = (uint8_t)index;
    facts.buffer_max = index ? FAR_MOST : 0;
    facts.buffer_alignment = index ? ALIGNMENT : 0;
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t device_open(void *instance, int32_t index, void **out)
{
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return hw_fail(((struct instance *)instance)->host, HW_NO_MEMORY, "out of memory");
    device->instance = instance;
    device->index = index;
    *out = device;
    return HW_OK;
}

static void device_close(void *device)
{
    free(device);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const uint32_t sizes[] = HW_OP_SIZES;
    (void)host;
    table->vendor = "none";
    table->version = "1";
    table->ops = &ops_table;
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
    table->supports = ops_supports;
    table->kernel_info = ops_kernel_info;
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
    table->pack_size = ops_pack_size;
    table->pack = ops_pack;
    table->extension = extension_row;
    return HW_OK;
}

HW_PLUGIN("discrete", "title=Discrete test device\nvendor=none\nrank=95\n", fill)
