/* SPDX-License-Identifier: MIT */
/* pending.c - host tensors that a queue still has to write. */
#include "route/pending.h"

#include "call/layout.h"
#include "call/queue.h"
#include "memory/transfer.h"

#include <stdlib.h>

void pending_add(struct hw_queue *queue, struct pending_write *write)
{
    write->next = queue->pending;
    queue->pending = write;
}

bool pending_overlaps(const struct hw_queue *queue, const struct hw_tensor *host)
{
    const uint64_t begin = (uint64_t)(uintptr_t)hw_tensor_address(host);
    const uint64_t end = begin + hw_tensor_bytes(host);
    for (const struct pending_write *write = queue->pending; write; write = write->next)
        if (begin < write->end && write->begin < end)
            return true;
    return false;
}

static struct pending_write *reversed(struct pending_write *write)
{
    struct pending_write *turned = NULL;
    while (write) {
        struct pending_write *next = write->next;
        write->next = turned;
        turned = write;
        write = next;
    }
    return turned;
}

/* Sets `from` to the contiguous elements; false if the device writes the host tensor itself. */
static bool source_of(const struct pending_write *write, struct hw_tensor *from)
{
    uint64_t bytes;
    *from = write->to;
    if (!write->from || !make_dense(from, NULL, &bytes))
        return false;
    from->buffer = write->shared;
    from->data = write->shared ? NULL : write->from;
    from->offset = 0;
    return true;
}

static bool has_scattered(const struct hw_queue *queue)
{
    bool any = false;
    for (const struct pending_write *w = queue->pending; w && !any; w = w->next)
        any = w->from && !w->shared;
    return any;
}

enum hw_status pending_in_order(struct hw_queue *queue)
{
    if (has_scattered(queue))
        return queue_settle(queue);
    struct hw_tensor from;
    enum hw_status status = HW_OK;
    struct pending_write *oldest = reversed(queue->pending);
    for (struct pending_write *write = oldest; write && !status; write = write->next)
        if (source_of(write, &from) && !(status = queue_move(queue, &write->to, &from)))
            write->from = NULL;
    queue->pending = reversed(oldest);
    return status;
}

void pending_finish(struct hw_queue *queue, bool completed)
{
    /* The oldest write comes first, so that the last write to a byte wins. */
    struct pending_write *write = reversed(queue->pending);
    queue->pending = NULL;
    while (write) {
        struct pending_write *next = write->next;
        struct hw_tensor from;
        if (completed && source_of(write, &from))
            host_move(&write->to, &from);
        free(write);
        write = next;
    }
}
