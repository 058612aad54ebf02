/* SPDX-License-Identifier: MIT */
/* memory.c - memory that is shared with the worker or only on the plugin's device; transfers. */
#define _GNU_SOURCE
#include "worker/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE UINT64_C(4096) /* shared memory is aligned to at least this */

/* ---- shared memory ---- */

static void list_add(struct remote_memory *memory)
{
    struct worker *worker = memory->worker;
    pthread_mutex_lock(&worker->lock);
    memory->next = worker->shared;
    memory->link = &worker->shared;
    if (memory->next)
        memory->next->link = &memory->next;
    worker->shared = memory;
    pthread_mutex_unlock(&worker->lock);
}

static void list_remove(struct remote_memory *memory)
{
    struct worker *worker = memory->worker;
    pthread_mutex_lock(&worker->lock);
    *memory->link = memory->next;
    if (memory->next)
        memory->next->link = memory->link;
    pthread_mutex_unlock(&worker->lock);
}

/* Whether any of these bytes are in shared memory, which the worker's queues may write. */
static bool is_shared(struct worker *worker, const void *host, uint64_t bytes)
{
    const uintptr_t at = (uintptr_t)host;
    bool found = false;
    pthread_mutex_lock(&worker->lock);
    for (const struct remote_memory *m = worker->shared; m && !found; m = m->next) {
        const uintptr_t from = (uintptr_t)m->address;
        found = at < from ? bytes > from - at : at - from < m->mapped;
    }
    pthread_mutex_unlock(&worker->lock);
    return found;
}

/* ---- allocating ---- */

static int32_t no_memory(const struct worker *worker, uint64_t bytes)
{
    return worker_fail(worker, HW_NO_MEMORY,
                       "cannot share %llu bytes of memory with the worker process: %s",
                       (unsigned long long)bytes, strerror(errno));
}

static int32_t ask_memory(struct remote_memory *memory, enum wire_call call, int file,
                          const struct wire_memory *arguments)
{
    return worker_ask(memory->worker,
                      &(struct question){ .channel = WIRE_CONTROL,
                                          .call = call,
                                          .arguments = arguments,
                                          .bytes = sizeof *arguments,
                                          .file = file,
                                          .data = &memory->id,
                                          .data_bytes = sizeof memory->id });
}

/* Allocates shared memory. The plugin imports it, unless only the worker uses it. */
static int32_t share(struct remote_memory *memory, const struct wire_memory *arguments)
{
    const uint64_t whole = (arguments->bytes + PAGE - 1) / PAGE * PAGE;
    int file = -1;
    errno = ENOMEM;
    memory->address = arguments->bytes && arguments->bytes <= SIZE_MAX / 4
                          ? link_share((size_t)whole, &file)
                          : NULL;
    if (!memory->address)
        return no_memory(memory->worker, arguments->bytes);
    memory->mapped = (size_t)whole;
    const int32_t status = ask_memory(memory, WIRE_SHARE, file, arguments);
    close(file);
    if (status)
        munmap(memory->address, memory->mapped);
    return status;
}

static int32_t make(struct remote_device *device, const struct wire_memory *arguments,
                    bool shared, struct remote_memory **memory)
{
    struct remote_memory *made = calloc(1, sizeof *made);
    if (!made)
        return worker_fail(device->worker, HW_NO_MEMORY, "out of memory for a buffer");
    made->worker = device->worker;
    made->device = device->index;
    made->bytes = arguments->staging ? 0 : arguments->bytes;
    const int32_t status = shared ? share(made, arguments)
                                  : ask_memory(made, WIRE_ALLOC, 0, arguments);
    if (status) {
        free(made);
        return status;
    }
    atomic_fetch_add(&device->worker->wire->memory[device->index].allocated,
                     (int64_t)made->bytes);
    if (made->address)
        list_add(made);
    *memory = made;
    return HW_OK;
}

/* Shared memory has the same address modulo a page in both processes, but not modulo more. */
static bool is_aligned_enough(const struct remote_device *device)
{
    return device->alignment <= PAGE;
}

static int32_t too_aligned(const struct worker *worker)
{
    return worker_fail(worker, HW_UNSUPPORTED,
                       "in worker mode (HW_WORKER), host-visible memory is aligned "
                       "to 4096 bytes, but the device requires more");
}

int32_t remote_alloc(void *of, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer)
{
    struct remote_device *device = of;
    const struct wire_memory arguments = { .device = device->index,
                                           .flags = flags,
                                           .bytes = bytes };
    const bool visible = flags & HW_BUFFER_HOST_VISIBLE;
    struct remote_memory *memory = NULL;
    int32_t status = HW_UNSUPPORTED;
    if (!is_aligned_enough(device)) {
        if (visible)
            return too_aligned(device->worker);
    } else if (visible || atomic_load(&device->shares)) {
        status = make(device, &arguments, true, &memory);
        if (status == HW_UNSUPPORTED && !visible)
            atomic_store(&device->shares, false);
    }
    if (status == HW_UNSUPPORTED && !visible)
        status = make(device, &arguments, false, &memory);
    if (status)
        return status;
    buffer->impl = memory;
    buffer->host = memory->address;
    buffer->flags = flags | (memory->address ? HW_BUFFER_HOST_VISIBLE : 0u);
    return HW_OK;
}

void remote_memory_free(struct remote_memory *memory)
{
    struct worker *worker = memory->worker;
    const struct wire_memory arguments = { .memory = memory->id, .device = memory->device };
    worker_tell(worker, &(struct question){ .channel = WIRE_CONTROL,
                                            .call = WIRE_FREE,
                                            .arguments = &arguments,
                                            .bytes = sizeof arguments });
    if (memory->address) {
        list_remove(memory);
        munmap(memory->address, memory->mapped);
    }
    atomic_fetch_sub(&worker->wire->memory[memory->device].allocated,
                     (int64_t)memory->bytes);
    free(memory);
}

void remote_free(void *device, struct hw_buffer *buffer)
{
    (void)device;
    remote_memory_free(buffer->impl);
}

struct wire_view remote_view(const struct hw_buffer *buffer)
{
    const struct remote_memory *memory = buffer->impl;
    return (struct wire_view){ .memory = memory->id,
                               .flags = buffer->flags,
                               .offset = buffer->offset,
                               .bytes = buffer->bytes };
}

/* ---- transfers between buffers ---- */

static int32_t push(struct remote_queue *queue, const struct wire_transfer *transfer)
{
    int32_t status;
    void *arguments = remote_begin(queue, WIRE_TRANSFER, sizeof *transfer, &status);
    if (!arguments)
        return status;
    memcpy(arguments, transfer, sizeof *transfer);
    remote_push(queue);
    return HW_OK;
}

static int32_t between_buffers(struct remote_queue *queue, const struct hw_transfer *t)
{
    return push(queue, &(struct wire_transfer){ .dst = remote_view(t->dst),
                                                .src = remote_view(t->src),
                                                .dst_offset = t->dst_offset,
                                                .src_offset = t->src_offset,
                                                .bytes = t->bytes,
                                                .rows = t->rows,
                                                .dst_pitch = t->dst_pitch,
                                                .src_pitch = t->src_pitch });
}

/* ---- transfers between the host and shared memory ---- */

static char *address(const struct hw_buffer *buffer, const void *host, uint64_t offset)
{
    return (char *)(uintptr_t)(buffer ? buffer->host : host) + (buffer ? offset : 0);
}

/* Copies on the host once the queue has completed its work. */
static int32_t by_the_host(struct remote_queue *queue, const struct hw_transfer *t)
{
    const int32_t status = remote_settle(queue);
    if (!status)
        hw_transfer_host(t, address(t->dst, t->dst_host, t->dst_offset),
                         address(t->src, t->src_host, t->src_offset));
    return status;
}

/* ---- transfers between the host and device memory ---- */

/* A piece of a transfer: bytes that are contiguous on both sides. */
struct piece {
    const struct hw_transfer *of;
    uint64_t dst, src, bytes; /* dst, src: offsets from the first byte on each side */
};

static int32_t staging_make(struct remote_queue *queue)
{
    return queue->staging ? HW_OK
                          : make(queue->device,
                                 &(struct wire_memory){ .device = queue->device->index,
                                                        .staging = 1,
                                                        .bytes = WIRE_STAGING },
                                 true, &queue->staging);
}

/* To the device: copies the host's bytes to staging memory now; the device reads them in order. */
static int32_t piece_in(struct remote_queue *queue, const struct piece *piece)
{
    const struct hw_transfer *t = piece->of;
    const int32_t status = queue->staged + piece->bytes > WIRE_STAGING
                               ? remote_settle(queue)
                               : HW_OK;
    if (status)
        return status;
    const uint64_t at = queue->staged;
    memcpy((char *)queue->staging->address + at, (const char *)t->src_host + piece->src,
           (size_t)piece->bytes);
    queue->staged += (piece->bytes + WIRE_UNIT - 1) / WIRE_UNIT * WIRE_UNIT;
    return push(queue, &(struct wire_transfer){ .dst = remote_view(t->dst),
                                                .dst_offset = t->dst_offset + piece->dst,
                                                .src_offset = at,
                                                .bytes = piece->bytes,
                                                .staging = queue->staging->id });
}

/* To the host: waits for the bytes in staging memory, then copies them. */
static int32_t piece_out(struct remote_queue *queue, const struct piece *piece)
{
    const struct hw_transfer *t = piece->of;
    int32_t status = queue->staged + piece->bytes > WIRE_STAGING ? remote_settle(queue)
                                                                 : HW_OK;
    const uint64_t at = queue->staged;
    if (status ||
        (status = push(queue,
                       &(struct wire_transfer){ .src = remote_view(t->src),
                                                .src_offset = t->src_offset + piece->src,
                                                .dst_offset = at,
                                                .bytes = piece->bytes,
                                                .staging = queue->staging->id })) ||
        (status = remote_settle(queue)))
        return status;
    memcpy((char *)t->dst_host + piece->dst, (const char *)queue->staging->address + at,
           (size_t)piece->bytes);
    return HW_OK;
}

static int32_t move_row(struct remote_queue *queue, const struct piece *row)
{
    int32_t status = HW_OK;
    for (uint64_t done = 0; done < row->bytes && !status;) {
        const uint64_t rest = row->bytes - done;
        const struct piece piece = { .of = row->of,
                                     .dst = row->dst + done,
                                     .src = row->src + done,
                                     .bytes = rest < WIRE_STAGING ? rest : WIRE_STAGING };
        status = row->of->dst ? piece_in(queue, &piece) : piece_out(queue, &piece);
        done += piece.bytes;
    }
    return status;
}

/* The host's bytes are copied immediately. If they are in a buffer, an earlier call may still have
 * to write them: waits for the queue first. */
static int32_t settle_source(struct remote_queue *queue, const struct hw_transfer *t,
                             uint64_t rows)
{
    const uint64_t bytes = (rows - 1) * t->src_pitch + t->bytes;
    return t->dst && is_shared(queue->worker, t->src_host, bytes) ? remote_settle(queue)
                                                                  : HW_OK;
}

static int32_t through_staging(struct remote_queue *queue, const struct hw_transfer *t)
{
    const uint64_t rows = t->rows > 1 ? t->rows : 1;
    int32_t status = staging_make(queue);
    if (!status)
        status = settle_source(queue, t, rows);
    for (uint64_t i = 0; i < rows && !status; i++)
        status = move_row(queue, &(struct piece){ .of = t,
                                                  .dst = i * t->dst_pitch,
                                                  .src = i * t->src_pitch,
                                                  .bytes = t->bytes });
    return status;
}

int32_t remote_transfer(void *of, const struct hw_transfer *transfer)
{
    struct remote_queue *queue = of;
    const struct hw_buffer *dst = transfer->dst, *src = transfer->src;
    if (dst && src)
        return between_buffers(queue, transfer);
    if ((!dst || dst->host) && (!src || src->host))
        return by_the_host(queue, transfer);
    return through_staging(queue, transfer);
}
