/* SPDX-License-Identifier: MIT */
/* stage.c - copies host tensors to a device that cannot access them, and back: directly or through
 * pinned memory, and always in order with the queue's other work on them. */
#include "route/stage.h"

#include "base/message.h"
#include "call/layout.h"
#include "call/queue.h"
#include "memory/buffer.h"
#include "memory/transfer.h"
#include "route/pending.h"
#include "route/scratch.h"
#include "route/support.h"

#include <stdlib.h>

/* A tensor of at most GATHER_BYTES bytes, or in more than DIRECT_RUNS pieces, is first gathered in
 * pinned memory. */
#define GATHER_BYTES (UINT64_C(1) << 20)
#define DIRECT_RUNS  16
/* Up to this size, a transfer takes longer than reading over the bus. */
#define SHARED_BYTES (UINT64_C(8) << 10)

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

/* Describes the same elements, contiguous, at `memory`. If that is pinned memory, uses its buffer
 * `pinned`: plugins handle a buffer better than an address. */
static struct hw_tensor in_host_memory(const struct hw_tensor *of, void *memory,
                                       struct hw_buffer *pinned)
{
    struct hw_tensor t = *of;
    uint64_t bytes;
    make_dense(&t, of, &bytes); /* cannot fail: the memory has been allocated */
    t.buffer = pinned;
    t.data = pinned ? NULL : memory;
    t.offset = 0;
    return t;
}

static uint64_t dense_bytes(const struct hw_tensor *of)
{
    struct hw_tensor t = *of;
    uint64_t bytes;
    return make_dense(&t, of, &bytes) ? bytes : UINT64_MAX;
}

enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host)
{
    const uint64_t bytes = dense_bytes(to);
    /* The queue's pending writes to the tensor come first. */
    enum hw_status status = pending_overlaps(queue, host) ? queue_settle(queue) : HW_OK;
    if (status)
        return status;
    count(&queue->calls[op].staged_bytes, bytes);
    if ((bytes > GATHER_BYTES && move_count(to, host) <= DIRECT_RUNS) ||
        in_a_buffer(queue, host))
        return queue_move(queue, to, host);
    struct hw_buffer *pinned;
    void *memory = scratch_host(queue, bytes, &pinned);
    if (!memory)
        return HW_NO_MEMORY;
    const struct hw_tensor gathered = in_host_memory(to, memory, pinned);
    host_move(&gathered, host);
    return queue_move(queue, to, &gathered);
}

static struct pending_write *new_write(void)
{
    struct pending_write *write = calloc(1, sizeof *write);
    if (!write)
        fail(HW_NO_MEMORY, "out of memory for copying a tensor to the host");
    return write;
}

static void write_later(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                        struct pending_write *write)
{
    write->begin = (uint64_t)(uintptr_t)hw_tensor_address(host);
    write->end = write->begin + hw_tensor_bytes(host);
    write->to = *host;
    pending_add(queue, write);
    count(&queue->calls[op].staged_bytes, dense_bytes(host));
}

enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from)
{
    const bool direct = move_count(host, from) <= DIRECT_RUNS || in_a_buffer(queue, host);
    enum hw_status status = pending_overlaps(queue, host) ? queue_settle(queue) : HW_OK;
    if (status)
        return status;
    struct hw_buffer *pinned = NULL;
    struct pending_write *write = new_write();
    void *memory = direct || !write ? NULL
                                    : scratch_host(queue, dense_bytes(host), &pinned);
    if (!write || (!direct && !memory)) {
        free(write);
        return HW_NO_MEMORY;
    }
    const struct hw_tensor scattered = direct ? *host
                                              : in_host_memory(host, memory, pinned);
    if ((status = queue_move(queue, &scattered, from))) {
        free(write);
        return status;
    }
    write->from = memory;
    write_later(queue, op, host, write);
    return HW_OK;
}

enum hw_status stage_back(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                          struct buffer *shared)
{
    struct pending_write *write = new_write();
    if (!write)
        return HW_NO_MEMORY;
    write->from = shared->base.host;
    write->shared = &shared->base;
    write_later(queue, op, host, write);
    return HW_OK;
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
    if ((role_writes(role) && queue->strict) || in_a_buffer(queue, host))
        return HW_OK;
    enum hw_status status = HW_OK;
    if (role_reads(role) && pending_overlaps(queue, host))
        status = queue_settle(queue);
    if (status || !(*buffer = scratch_pinned(queue, dense_bytes(host))) ||
        !role_reads(role))
        return status;
    const struct hw_tensor shared = in_host_memory(host, NULL, &(*buffer)->base);
    host_move(&shared, host);
    count(&queue->calls[op].staged_bytes, dense_bytes(host));
    return HW_OK;
}
