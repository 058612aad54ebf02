/* SPDX-License-Identifier: MIT */
/* minimal.h - a complete, correct plugin with one device, no ops, and host memory. Plugins that
 * test something else start from it, and each bad plugin adds one mistake. Instance, device and
 * queue are all the host table, for its message functions.
 *
 * A plugin defines NAME before it includes this file. It may also define LINES (of the manifest),
 * DEVICE (the name of its device), CHANGES (it has a function change(), which replaces or adds
 * slots of the table), and NO_PLUGIN (it has its own manifest and entry, which calls fill()). */
#include <hw/plugin.h>

#include <stdlib.h>

#ifndef LINES
#define LINES ""
#endif
#ifndef DEVICE
#define DEVICE "a device of " NAME
#endif
#ifdef CHANGES
static void change(struct hw_plugin *table);
#endif

static int32_t plugin_open(const struct hw_host *host, void **self)
{
    *self = (void *)(uintptr_t)host;
    return HW_OK;
}

static void plugin_close(void *self)
{
    (void)self;
}

static int32_t plugin_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return HW_OK;
}

static int32_t plugin_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_OTHER;
    facts.features = HW_FEATURE_HOST_TENSORS | HW_FEATURE_UNIFIED_MEMORY;
    strcpy(facts.name, DEVICE);
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t plugin_device(void *self, int32_t index, void **device)
{
    (void)index;
    *device = self;
    return HW_OK;
}

static int32_t plugin_queue(void *device, const struct hw_queue_desc *desc, void **queue)
{
    (void)desc;
    *queue = device;
    return HW_OK;
}

static int32_t plugin_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}

static int32_t plugin_alloc(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer)
{
    const uint64_t whole = (bytes + 255) & ~UINT64_C(255);
    if (whole < bytes || !(buffer->impl = aligned_alloc(256, (size_t)whole)))
        return hw_fail(device, HW_NO_MEMORY, "out of memory");
    if (flags & HW_BUFFER_ZEROED)
        memset(buffer->impl, 0, (size_t)whole);
    buffer->host = buffer->impl;
    buffer->flags = flags;
    return HW_OK;
}

static void plugin_free(void *device, struct hw_buffer *buffer)
{
    (void)device;
    free(buffer->impl);
}

static int32_t plugin_transfer(void *queue, const struct hw_transfer *t)
{
    (void)queue;
    hw_transfer_host(t, t->dst ? (char *)t->dst->host + t->dst_offset : t->dst_host,
                     t->src ? (const char *)t->src->host + t->src_offset : t->src_host);
    return HW_OK;
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops };
    static const uint32_t sizes[] = HW_OP_SIZES;
    (void)host;
    table->vendor = "nobody";
    table->version = "1";
    table->ops = &ops;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = plugin_close;
    table->device_count = plugin_count;
    table->device_info = plugin_info;
    table->device_open = plugin_device;
    table->device_close = plugin_close;
    table->queue_open = plugin_queue;
    table->queue_close = plugin_close;
    table->queue_wait = plugin_wait;
    table->buffer_alloc = plugin_alloc;
    table->buffer_free = plugin_free;
    table->transfer = plugin_transfer;
#ifdef CHANGES
    change(table);
#endif
    return HW_OK;
}

#ifndef NO_PLUGIN
HW_PLUGIN(NAME, LINES, fill)
#endif
