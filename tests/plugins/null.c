/* SPDX-License-Identifier: MIT */
/* null.c - a plugin whose every op answers at once and computes nothing. Not for results: it
 * is what `hw bench dispatch` measures the library against, where a plugin's own work would
 * drown what a call costs. Its one device says so in its name, and is chosen after all others. */
#include <hw/plugin.h>

#include <stdlib.h>

static int32_t plugin_open(const struct hw_host *host, void **self)
{
    *self = (void *)(uintptr_t)host;
    return HW_OK;
}

static int32_t device_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return HW_OK;
}

static int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_OTHER;
    facts.features = HW_FEATURE_HOST_TENSORS | HW_FEATURE_UNIFIED_MEMORY;
    strcpy(facts.name, "Null device, computes nothing");
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t device_open(void *self, int32_t index, void **device)
{
    (void)index;
    *device = self;
    return HW_OK;
}

static int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    (void)desc;
    *queue = device;
    return HW_OK;
}

static void nothing(void *self)
{
    (void)self;
}

static int32_t done(void *queue)
{
    (void)queue;
    return HW_OK;
}

/* ---- memory is the host's ---- */

static int32_t buffer_alloc(void *device, uint64_t bytes, uint32_t flags,
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

static void buffer_free(void *device, struct hw_buffer *buffer)
{
    (void)device;
    free(buffer->impl);
}

static char *place(const struct hw_buffer *buffer, uint64_t offset)
{
    return (char *)buffer->impl + buffer->offset + offset;
}

static int32_t transfer(void *queue, const struct hw_transfer *t)
{
    (void)queue;
    hw_transfer_host(t, t->dst ? place(t->dst, t->dst_offset) : t->dst_host,
                     t->src ? place(t->src, t->src_offset) : t->src_host);
    return HW_OK;
}

/* ---- the ops ---- */

#define X(NAME, name)                                                                      \
    static int32_t null_##name(void *device, void *queue, const struct hw_##name *op)      \
    {                                                                                      \
        (void)device, (void)queue, (void)op;                                               \
        return HW_OK;                                                                      \
    }
HW_OPS(X)
#undef X

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops,
#define X(NAME, name) .name = null_##name,
                                              HW_OPS(X)
#undef X
    };
    static const uint32_t sizes[] = HW_OP_SIZES;
    (void)host;
    table->vendor = "nobody";
    table->version = "1";
    table->ops = &ops;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = nothing;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = nothing;
    table->queue_open = queue_open;
    table->queue_close = nothing;
    table->queue_wait = done;
    table->buffer_alloc = buffer_alloc;
    table->buffer_free = buffer_free;
    table->transfer = transfer;
    return HW_OK;
}

HW_PLUGIN("null", "vendor=nobody\nrank=99\n", fill)
