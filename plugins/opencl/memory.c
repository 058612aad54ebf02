/* SPDX-License-Identifier: MIT */
/* Buffers and transfers. hw_buffer.impl is the memory object itself. */
#include "opencl.h"

/* ---- memory that the host sees ---- */

/* The address to free is stored before such memory. */
enum { LEAST_ALIGNMENT = 256 };

static void *shared_alloc(const struct device *device, uint64_t bytes)
{
    const uint64_t alignment = device->alignment > LEAST_ALIGNMENT ? device->alignment
                                                                   : LEAST_ALIGNMENT;
    char *whole = device->cl->svm_alloc(
        device->context, MEMORY_READ_WRITE | MEMORY_SVM_FINE, bytes + alignment, 0);
    if (!whole)
        return NULL;
    void **memory = (void *)(whole + alignment - (uintptr_t)whole % alignment);
    memory[-1] = whole;
    return memory;
}

static void shared_free(const struct device *device, void *memory)
{
    if (memory)
        device->cl->svm_free(device->context, ((void **)memory)[-1]);
}

/* ---- buffers ---- */

static int fill_zero(struct device *device, void *memory, uint64_t bytes)
{
    const unsigned char zero = 0;
    int error = 0;
    void *queue = device->cl->create_queue(device->context, device->handle, 0, &error);
    if (!error)
        error = device->cl->fill(queue, memory, &zero, 1, 0, bytes, 0, NULL, NULL);
    if (!error)
        error = device->cl->finish(queue);
    if (queue)
        note(device, device->cl->release_queue(queue), "release a queue");
    return error;
}

void memory_describe(const struct device *device, uint64_t bytes, const char *purpose,
                     char *what, size_t size)
{
    const struct device_memory memory = device_memory(device->plugin, device->handle);
    const int length = snprintf(what, size, "allocate %llu bytes %sof the device's %llu",
                                (unsigned long long)bytes, purpose,
                                (unsigned long long)memory.total);
    if (memory.free)
        snprintf(what + length, size - (size_t)length, ", of which %llu are free",
                 (unsigned long long)memory.free);
}

static int32_t allocate(struct device *device, struct hw_buffer *buffer, uint64_t bytes,
                        uint32_t flags)
{
    char what[160] = "";
    int error = 0;
    buffer->impl = device->cl->create_buffer(
        device->context, buffer->host ? MEMORY_OF_HOST : 0, bytes, buffer->host, &error);
    if (!error && flags & HW_BUFFER_ZEROED) {
        error = fill_zero(device, buffer->impl, bytes);
        if (error)
            note(device, device->cl->release_buffer(buffer->impl), "release memory");
    }
    if (error)
        memory_describe(device, bytes, "", what, sizeof what);
    return answer(device, error, what);
}

int32_t memory_alloc(void *self, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer)
{
    struct device *device = self;
    const uint32_t known = HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED | HW_BUFFER_READ_ONLY |
                           HW_BUFFER_WRITE_ONLY | HW_BUFFER_ZEROED;
    const bool shared = flags & HW_BUFFER_HOST_VISIBLE;
    if (flags & ~known)
        return too_new(device->host, "allocate");
    if (shared && !device->shares)
        return hw_fail(device->host, HW_UNSUPPORTED,
                       "the device has no memory that the host can see without mapping it");
    int32_t status = check_lost(device);
    if (status)
        return status;
    buffer->host = shared ? shared_alloc(device, bytes) : NULL;
    if (shared && !buffer->host)
        return hw_fail(device->host, HW_NO_MEMORY,
                       "cannot allocate %llu bytes that the host can see",
                       (unsigned long long)bytes);
    status = allocate(device, buffer, bytes, flags);
    if (status) {
        shared_free(device, buffer->host);
        return status;
    }
    buffer->flags = flags;
    return HW_OK;
}

void memory_free(void *self, struct hw_buffer *buffer)
{
    struct device *device = self;
    note(device, device->cl->release_buffer(buffer->impl), "release memory");
    shared_free(device, buffer->host);
}

static int32_t retain_imported(struct device *device, const struct hw_import *desc)
{
    void *context = NULL;
    size_t bytes = 0;
    int error = device->cl->buffer_info(desc->handle, BUFFER_CONTEXT, sizeof context,
                                        &context, NULL);
    if (!error && context != device->context)
        return other_context(device, "memory object");
    if (!error)
        error = device->cl->buffer_info(desc->handle, BUFFER_BYTES, sizeof bytes, &bytes,
                                        NULL);
    if (!error && (desc->offset > bytes || desc->bytes > bytes - desc->offset))
        return hw_fail(device->host, HW_INVALID,
                       "the memory object has %zu bytes, which is less than %llu at offset "
                       "%llu",
                       bytes, (unsigned long long)desc->bytes,
                       (unsigned long long)desc->offset);
    return answer(device, error ? error : device->cl->retain_buffer(desc->handle),
                  "import memory");
}

/* "opencl.mem": a memory object of the application, created in the context of this device, which an
 * exported queue reports. */
int32_t memory_import(void *self, const struct hw_import *desc, struct hw_buffer *buffer)
{
    struct device *device = self;
    int32_t status = check_kind(device->host, "buffer", desc->kind, "opencl.mem");
    if (status)
        return status;
    if (!hw_knows(desc, sizeof *desc) ||
        desc->flags & ~(uint32_t)(HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY))
        return too_new(device->host, "import");
    status = retain_imported(device, desc);
    if (status)
        return status;
    buffer->impl = desc->handle;
    buffer->host = NULL;
    buffer->offset = desc->offset;
    return HW_OK;
}

int32_t memory_export(void *self, const struct hw_buffer *buffer, const char *kind,
                      struct hw_import *desc)
{
    const struct device *device = self;
    const int32_t status = check_kind(device->host, "buffer", kind, "opencl.mem");
    if (status)
        return status;
    desc->kind = "opencl.mem";
    desc->handle = buffer->impl;
    desc->offset = buffer->offset;
    return HW_OK;
}

/* ---- transfers ---- */

/* A side of a transfer: rows of bytes, in a buffer or in the host's memory. */
struct side {
    void *buffer, *host;
    size_t origin[3];
    size_t pitch;
};

static struct side side_of(const struct hw_buffer *buffer, const void *host,
                           uint64_t offset, uint64_t pitch, const struct hw_transfer *t)
{
    struct side side = { .pitch = t->rows > 1 ? pitch : t->bytes };
    if (buffer) {
        const uint64_t from = buffer->offset + offset;
        side.buffer = buffer->impl;
        /* An origin is a row and a position in it. */
        side.origin[0] = from % side.pitch;
        side.origin[1] = from / side.pitch;
    } else {
        side.host = (char *)(uintptr_t)host + offset;
    }
    return side;
}

static int copy(const struct queue *queue, const struct hw_transfer *t,
                const struct side *to, const struct side *from)
{
    const struct opencl *cl = queue->device->cl;
    const size_t region[] = { t->bytes, t->rows > 1 ? t->rows : 1, 1 };
    int error;
    if (to->buffer && from->buffer)
        return cl->copy(queue->handle, from->buffer, to->buffer, from->origin, to->origin,
                        region, from->pitch, 0, to->pitch, 0, 0, NULL, NULL);
    if (to->buffer)
        return cl->write(queue->handle, to->buffer, 0, to->origin, from->origin, region,
                         to->pitch, 0, from->pitch, 0, from->host, 0, NULL, NULL);
    if (from->buffer) {
        error = cl->read(queue->handle, from->buffer, 0, from->origin, to->origin, region,
                         from->pitch, 0, to->pitch, 0, to->host, 0, NULL, NULL);
        return error ? error : cl->flush(queue->handle);
    }
    error = cl->finish(queue->handle);
    if (!error)
        hw_transfer_host(t, to->host, from->host);
    return error;
}

int32_t memory_transfer(void *self, const struct hw_transfer *t)
{
    struct queue *queue = self;
    struct device *device = queue->device;
    if (!hw_knows(t, sizeof *t))
        return too_new(device->host, "transfer");
    if ((t->dst && t->dst->device != device) || (t->src && t->src->device != device))
        return hw_fail(device->host, HW_UNSUPPORTED,
                       "the OpenCL plugin does not copy from device to device");
    const int32_t status = check_lost(device);
    if (status || !t->bytes)
        return status;
    const struct side to = side_of(t->dst, t->dst_host, t->dst_offset, t->dst_pitch, t),
                      from = side_of(t->src, t->src_host, t->src_offset, t->src_pitch, t);
    return answer(device, copy(queue, t, &to, &from), "copy memory");
}
