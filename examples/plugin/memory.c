/* SPDX-License-Identifier: MIT */
/* memory.c - buffers and transfers. Only this file knows what a buffer is. */
#include "discrete.h"

#include <stdlib.h>

/* Memory that hw_buffer.impl points to. */
struct memory {
    _Alignas(ALIGNMENT) uint64_t bytes;
    _Alignas(ALIGNMENT) unsigned char cells[];
};

int32_t memory_alloc(void *self, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer)
{
    struct device *device = self;
    const struct hw_host *host = device->instance->host;
    if (device->lost)
        return device_lost(device);
    if (atomic_fetch_add(&device->used, bytes) + bytes > MEMORY_BYTES) {
        atomic_fetch_sub(&device->used, bytes);
        return hw_fail(host, HW_NO_MEMORY, "%llu of %llu bytes are in use",
                       (unsigned long long)device->used, (unsigned long long)MEMORY_BYTES);
    }
    const uint64_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct memory *memory = aligned_alloc(ALIGNMENT, sizeof *memory + (size_t)whole);
    if (!memory) {
        atomic_fetch_sub(&device->used, bytes);
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    }
    memory->bytes = bytes;
    if (flags & HW_BUFFER_ZEROED)
        memset(memory->cells, 0, bytes);
    buffer->impl = memory;
    /* A request for pinned memory has the flag for visible memory, too. */
    buffer->host = flags & HW_BUFFER_HOST_VISIBLE ? memory->cells : NULL;
    buffer->flags = flags;
    return HW_OK;
}

void memory_free(void *self, struct hw_buffer *buffer)
{
    struct device *device = self;
    struct memory *memory = buffer->impl;
    atomic_fetch_sub(&device->used, memory->bytes);
    free(memory);
}

/* The buffer may be a part of the allocation. */
void *memory_cells(const struct hw_buffer *buffer, uint64_t offset)
{
    struct memory *memory = buffer->impl;
    return memory->cells + buffer->offset + offset;
}

static int32_t run_transfer(struct queue *queue, struct job *job)
{
    const struct hw_transfer *t = &job->u.transfer;
    void *dst = t->dst ? memory_cells(t->dst, t->dst_offset) : t->dst_host;
    const void *src = t->src ? memory_cells(t->src, t->src_offset) : t->src_host;
    (void)queue;
    hw_transfer_host(t, dst, src);
    return HW_OK;
}

int32_t memory_transfer(void *self, const struct hw_transfer *t)
{
    struct queue *queue = self;
    const struct hw_host *host = queue->device->instance->host;
    if ((t->dst && t->dst->device != queue->device) ||
        (t->src && t->src->device != queue->device))
        return hw_fail(host, HW_UNSUPPORTED, "the test devices cannot copy to each other");
    struct job *job = queue_job(queue, run_transfer);
    if (!job)
        return queue_no_job(queue);
    job->u.transfer = *t;
    if (t->dst)
        job->u.transfer.dst = memcpy(&job->buffers[0], t->dst, sizeof *t->dst);
    if (t->src)
        job->u.transfer.src = memcpy(&job->buffers[1], t->src, sizeof *t->src);
    return queue_submit(queue, job);
}
