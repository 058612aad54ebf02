/* SPDX-License-Identifier: MIT */
/* buffer.c - buffers: from the pool, or wrapped around memory that somebody else made. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS                                                                              \
    (HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED | HW_BUFFER_READ_ONLY |                     \
     HW_BUFFER_WRITE_ONLY | HW_BUFFER_ZEROED)

static void list_add(struct buffer *buffer)
{
    struct hw_context *context = buffer->device->context;
    pthread_mutex_lock(&context->lock);
    buffer->next = context->buffers;
    if (buffer->next)
        buffer->next->previous = buffer;
    context->buffers = buffer;
    pthread_mutex_unlock(&context->lock);
}

static void list_remove(struct buffer *buffer)
{
    struct hw_context *context = buffer->device->context;
    pthread_mutex_lock(&context->lock);
    if (buffer->next)
        buffer->next->previous = buffer->previous;
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else
        context->buffers = buffer->next;
    pthread_mutex_unlock(&context->lock);
}

/* Zeros through the host's address, or piece by piece through the device's own queue. */
static enum hw_status fill_zero(struct buffer *buffer)
{
    static const char zeros[4096];
    struct hw_queue *queue;
    if (buffer->base.host) {
        memset(buffer->base.host, 0, buffer->base.bytes);
        return HW_OK;
    }
    enum hw_status status = service_lend(buffer->device, &queue);
    if (status)
        return status;
    for (uint64_t at = 0; at < buffer->base.bytes && !status; at += sizeof zeros) {
        const uint64_t left = buffer->base.bytes - at;
        status = transfer(queue, &(struct hw_transfer){
                                     .dst = &buffer->base,
                                     .dst_offset = at,
                                     .src_host = zeros,
                                     .bytes = left < sizeof zeros ? left : sizeof zeros });
    }
    if (!status)
        status = hw_queue_wait(queue);
    service_return(buffer->device);
    return status;
}

static enum hw_status begin(const char *what, struct hw_device *device,
                            struct hw_buffer **out, struct buffer **buffer)
{
    if (!out)
        return fail(HW_INVALID, "%s: buffer may not be NULL", what);
    *out = NULL;
    if (!device)
        return fail(HW_INVALID, "%s: device may not be NULL", what);
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    *buffer = calloc(1, sizeof **buffer);
    if (!*buffer)
        return fail(HW_NO_MEMORY, "out of memory for a buffer");
    (*buffer)->device = device;
    return HW_OK;
}

enum hw_status hw_buffer_alloc(struct hw_device *device, uint64_t bytes, uint32_t flags,
                               struct hw_buffer **out)
{
    struct buffer *buffer;
    enum hw_status status = begin("hw_buffer_alloc", device, out, &buffer);
    if (status)
        return status;
    if (bytes == 0 || (flags & ~(uint32_t)FLAGS))
        status = fail(HW_INVALID, "hw_buffer_alloc: %llu bytes, flags 0x%x: %s",
                      (unsigned long long)bytes, (unsigned)flags,
                      bytes ? "a flag this version does not know"
                            : "a buffer has at least one byte");
    if (status || (status = pool_take(device->pool, bytes, flags, &buffer->base,
                                      &buffer->block))) {
        free(buffer);
        return status;
    }
    list_add(buffer);
    if ((flags & HW_BUFFER_ZEROED) && (status = fill_zero(buffer))) {
        hw_buffer_free(&buffer->base);
        return status;
    }
    *out = &buffer->base;
    return HW_OK;
}

enum hw_status hw_buffer_import(struct hw_device *device, uint32_t kind, void *handle,
                                uint64_t bytes, struct hw_buffer **out)
{
    struct buffer *buffer;
    enum hw_status status = begin("hw_buffer_import", device, out, &buffer);
    if (status)
        return status;
    if (!handle || !bytes) {
        free(buffer);
        return fail(HW_INVALID, "hw_buffer_import: no handle, or no bytes");
    }
    fail(HW_OK, "no reason given");
    status = (enum hw_status)device->plugin->table.buffer_import(device->impl, kind, handle,
                                                                 bytes, &buffer->base);
    if (status) {
        free(buffer);
        return fail_in(status, "%s: import memory: ", device->name);
    }
    buffer->base.device = device->impl;
    buffer->base.bytes = bytes;
    list_add(buffer);
    *out = &buffer->base;
    return HW_OK;
}

void hw_buffer_free(struct hw_buffer *base)
{
    struct buffer *buffer = (struct buffer *)base;
    if (!buffer || forked(buffer->device->context))
        return;
    list_remove(buffer);
    if (buffer->block)
        pool_give(buffer->device->pool, buffer->block);
    else
        buffer->device->plugin->table.buffer_free(buffer->device->impl, &buffer->base);
    free(buffer);
}

void *hw_buffer_host(struct hw_buffer *buffer)
{
    return buffer && (buffer->flags & HW_BUFFER_HOST_VISIBLE) ? buffer->host : NULL;
}

uint64_t hw_buffer_bytes(const struct hw_buffer *buffer)
{
    return buffer ? buffer->bytes : 0;
}

struct hw_device *hw_buffer_device(const struct hw_buffer *buffer)
{
    return buffer ? ((const struct buffer *)buffer)->device : NULL;
}
