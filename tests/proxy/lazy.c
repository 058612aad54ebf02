/* SPDX-License-Identifier: MIT */
/* A plugin that does its work only when its queue is waited for: a premature use of a result finds
 * the old contents. It imports host memory, and has memory of its own that the host does not see.
 * Its events are never recorded. */
#define CHANGES 1
#include "minimal.h"

#include <math.h>

enum { ROOM = 64 };

/* One of the two; its buffers live until the queue is waited for. */
struct work {
    struct hw_silu silu;
    struct hw_transfer transfer;
};

/* The work of the test's only queue. */
static struct work list[ROOM];
static int count;

static void compute(const struct hw_silu *op)
{
    const float *x = hw_tensor_address(&op->x);
    float *y = hw_tensor_address(&op->y);
    for (int64_t i = 0; i < op->x.extent[0]; i++)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}

static int32_t wait_for_all(void *queue)
{
    for (int i = 0; i < count; i++)
        if (list[i].transfer.size)
            plugin_transfer(queue, &list[i].transfer);
        else
            compute(&list[i].silu);
    count = 0;
    return HW_OK;
}

static struct work *add(void *queue)
{
    if (count == ROOM)
        wait_for_all(queue);
    return &list[count++];
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    if (op->x.dtype != HW_F32 || op->y.dtype != HW_F32 || op->x.rank != 1)
        return hw_fail(device, HW_UNSUPPORTED, NAME " computes f32 of rank 1 alone");
    *add(queue) = (struct work){ .silu = *op };
    return HW_OK;
}

static int32_t transfer(void *queue, const struct hw_transfer *t)
{
    *add(queue) = (struct work){ .transfer = *t };
    return HW_OK;
}

static int32_t info_of(void *self, int32_t index, struct hw_device_info *info)
{
    struct hw_device_info facts = hw_no_facts();
    (void)self, (void)index;
    facts.kind = HW_DEVICE_OTHER;
    facts.buffer_alignment = ALIGNMENT;
    strcpy(facts.name, DEVICE);
    hw_answer(info, &facts);
    return HW_OK;
}

/* A buffer without `impl` is not freed by this plugin. */
static int32_t import(void *device, const struct hw_import *desc, struct hw_buffer *buffer)
{
    buffer->host = desc->handle;
    buffer->impl = NULL;
    buffer->bytes = desc->bytes;
    buffer->flags = desc->flags;
    return (uintptr_t)desc->handle % ALIGNMENT
               ? hw_fail(device, HW_INVALID, "memory is not aligned")
               : HW_OK;
}

static int32_t event_create(void *device, uint32_t flags, void **event)
{
    (void)flags;
    *event = device;
    return HW_OK;
}

static int32_t event_record(void *event, void *queue)
{
    (void)queue;
    return hw_fail(event, HW_INTERNAL, "no event is recorded");
}

static int32_t event_wait(void *queue, void *event)
{
    (void)queue, (void)event;
    return HW_OK;
}

static int32_t event_ready(void *event)
{
    (void)event;
    return HW_OK;
}

static const struct hw_plugin_ops ops = { .size = sizeof ops, .silu = silu };

static void change(struct hw_plugin *table)
{
    table->ops = &ops;
    table->device_info = info_of;
    table->queue_wait = wait_for_all;
    table->transfer = transfer;
    table->buffer_import = import;
    table->event_create = event_create;
    table->event_destroy = plugin_close;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_query = event_ready;
    table->event_sync = event_ready;
}
