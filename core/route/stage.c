/* SPDX-License-Identifier: MIT */
/* stage.c - copies host tensors to a device that cannot access them, and back: directly or through
 * pinned memory, and always in order with the queue's other work on them. The host copies results
 * from pinned memory when the queue is waited for. */
#include "route/stage.h"

#include "base/message.h"
#include "call/layout.h"
#include "call/queue.h"
#include "memory/buffer.h"
#include "memory/transfer.h"
#include "route/scratch.h"
#include "route/support.h"

#include <stdlib.h>

/* A tensor of at most GATHER_BYTES bytes, or in more than DIRECT_RUNS pieces, is first gathered in
 * pinned memory. */
#define GATHER_BYTES (UINT64_C(1) << 20)
/* Up to this size, a transfer takes longer than reading over the bus. */
#define SHARED_BYTES (UINT64_C(8) << 10)

/* ---- host tensors that a queue still has to write ---- */

/* The oldest is the first in the queue's list, so that the last write to a byte wins. */
struct pending_write {
    struct pending_write *next;
    struct hw_tensor to; /* the host tensor */
    /* Pinned memory with the contiguous elements, complete once the queue has completed. NULL: the
     * device writes the host tensor itself. */
    struct hw_buffer *from;
};

bool pending_overlaps(const struct hw_queue *queue, const struct hw_tensor *host)
{
    const char *begin = hw_tensor_address(host), *end = begin + hw_tensor_bytes(host);
    bool overlaps = false;
    for (const struct pending_write *w = queue->pending; w && !overlaps; w = w->next) {
        const char *at = hw_tensor_address(&w->to);
        overlaps = begin < at + hw_tensor_bytes(&w->to) && at < end;
    }
    return overlaps;
}

enum hw_status pending_in_order(struct hw_queue *queue)
{
    for (struct pending_write *write = queue->pending; write; write = write->next) {
        const struct hw_tensor from = dense_at(&write->to, write->from, NULL);
        if (!write->from)
            continue;
        if (move_count(&write->to, &from) > DIRECT_RUNS)
            return queue_settle(queue);
        const enum hw_status status = queue_move(queue, &write->to, &from);
        if (status)
            return status;
        write->from = NULL;
    }
    return HW_OK;
}

void pending_finish(struct hw_queue *queue, bool completed)
{
    while (queue->pending) {
        struct pending_write *write = queue->pending;
        queue->pending = write->next;
        if (completed && write->from) {
            const struct hw_tensor from = dense_at(&write->to, NULL, write->from->host);
            host_move(&write->to, &from);
        }
        free(write);
    }
}

/* Settles the queue if it still has to write some of these bytes. */
static enum hw_status pending_before(struct hw_queue *queue, const struct hw_tensor *host)
{
    return pending_overlaps(queue, host) ? queue_settle(queue) : HW_OK;
}

/* ---- staging ---- */

/* Whether the address of the host tensor is in a buffer's memory. The queue may still have to write
 * or read that buffer, so only transfers in the queue's order see the right contents. */
static bool in_a_buffer(const struct hw_queue *queue, const struct hw_tensor *host)
{
    struct hw_context *context = queue->device->context;
    const uintptr_t begin = (uintptr_t)hw_tensor_address(host),
                    end = begin + hw_tensor_bytes(host);
    bool found = false;
    pthread_mutex_lock(&context->lock);
    for (const struct buffer *b = context->buffers; b && !found; b = b->next) {
        const uintptr_t at = (uintptr_t)b->base.host;
        found = at && begin < at + b->base.bytes && at < end;
    }
    pthread_mutex_unlock(&context->lock);
    return found;
}

/* Without pinned memory: moves the elements through ordinary memory, and waits. */
static enum hw_status stage_waiting(struct hw_queue *queue, const struct hw_tensor *dst,
                                    const struct hw_tensor *src)
{
    const struct hw_tensor *host = dst->buffer ? src : dst;
    void *memory = malloc((size_t)dense_bytes(host) + 1);
    if (!memory)
        return fail(HW_NO_MEMORY, "out of memory for %llu bytes to stage a tensor in",
                    (unsigned long long)dense_bytes(host));
    const struct hw_tensor gathered = dense_at(host, NULL, memory);
    if (host == src)
        host_move(&gathered, src);
    enum hw_status status = host == src ? queue_move(queue, dst, &gathered)
                                        : queue_move(queue, &gathered, src);
    if (status)
        queue_drain(queue); /* the device may be using the memory already */
    else if (!(status = queue_settle(queue)) && host == dst)
        host_move(dst, &gathered);
    free(memory);
    return status;
}

enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host)
{
    const uint64_t bytes = dense_bytes(to);
    /* The queue's pending writes to the tensor come first. */
    enum hw_status status = pending_before(queue, host);
    if (status)
        return status;
    count(&queue->calls[op].staged_bytes, bytes);
    if ((bytes > GATHER_BYTES && move_count(to, host) <= DIRECT_RUNS) ||
        in_a_buffer(queue, host))
        return queue_move(queue, to, host);
    struct buffer *pinned = scratch_pinned(queue, bytes);
    if (!pinned)
        return stage_waiting(queue, to, host);
    const struct hw_tensor gathered = dense_at(to, &pinned->base, NULL);
    host_move(&gathered, host);
    scratch_give(queue, pinned);
    return queue_move(queue, to, &gathered);
}

enum hw_status stage_back(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                          struct buffer *pinned)
{
    struct pending_write *write = malloc(sizeof *write), **last = &queue->pending;
    if (!write)
        return fail(HW_NO_MEMORY, "out of memory for copying a tensor to the host");
    *write = (struct pending_write){ .to = *host, .from = pinned ? &pinned->base : NULL };
    while (*last)
        last = &(*last)->next;
    *last = write;
    count(&queue->calls[op].staged_bytes, dense_bytes(host));
    return HW_OK;
}

enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from)
{
    const bool direct = move_count(host, from) <= DIRECT_RUNS || in_a_buffer(queue, host);
    enum hw_status status = pending_before(queue, host);
    if (status)
        return status;
    struct buffer *pinned = direct ? NULL : scratch_pinned(queue, dense_bytes(host));
    if (!direct && !pinned) {
        count(&queue->calls[op].staged_bytes, dense_bytes(host));
        return stage_waiting(queue, host, from);
    }
    scratch_give(queue, pinned);
    const struct hw_tensor gathered = dense_at(host, pinned ? &pinned->base : NULL, NULL);
    status = queue_move(queue, direct ? host : &gathered, from);
    return status ? status : stage_back(queue, op, host, pinned);
}

bool stage_shares(const struct hw_device *device, uint32_t op, const void *args)
{
    const struct op_row *row = &op_rows[op];
    bool small = true;
    for (uint32_t i = 0; i < row->operand_count && small; i++) {
        const struct hw_tensor *t = operand_at(args, &row->operands[i]);
        small = t->dtype == HW_NONE ||
                (must_stage(device, t) && dense_bytes(t) <= SHARED_BYTES);
    }
    return small;
}

enum hw_status stage_shared(struct hw_queue *queue, uint32_t op, enum hw_role role,
                            const struct hw_tensor *host, struct buffer **buffer)
{
    *buffer = NULL;
    if ((role_writes(role) && queue->write_in_order) || in_a_buffer(queue, host))
        return HW_OK;
    const enum hw_status status = role_reads(role) ? pending_before(queue, host) : HW_OK;
    if (status || !(*buffer = scratch_pinned(queue, dense_bytes(host))) ||
        !role_reads(role))
        return status;
    const struct hw_tensor shared = dense_at(host, &(*buffer)->base, NULL);
    host_move(&shared, host);
    count(&queue->calls[op].staged_bytes, dense_bytes(host));
    return HW_OK;
}
