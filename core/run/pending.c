/* SPDX-License-Identifier: MIT */
/* pending.c - host tensors that a queue has yet to write. */
#include "run/pending.h"

#include "run/layout.h"
#include "run/queue.h"
#include "run/transfer.h"

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

bool pending_copies(const struct hw_queue *queue)
{
    for (const struct pending_write *write = queue->pending; write; write = write->next)
        if (write->from)
            return true;
    return false;
}

void pending_finish(struct hw_queue *queue, bool completed)
{
    struct pending_write *write = queue->pending, *turned = NULL;
    queue->pending = NULL;
    while (write) { /* reverses the list, so that the last write to a byte comes last */
        struct pending_write *next = write->next;
        write->next = turned;
        turned = write;
        write = next;
    }
    while (turned) {
        struct pending_write *next = turned->next;
        struct hw_tensor from = turned->to;
        uint64_t bytes;
        if (completed && turned->from && make_dense(&from, NULL, &bytes)) {
            from.data = turned->from;
            from.offset = 0;
            host_move(&turned->to, &from);
        }
        free(turned);
        turned = next;
    }
}
