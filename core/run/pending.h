/* SPDX-License-Identifier: MIT */
/* pending.h - host tensors that a queue has yet to write. */
#ifndef HW_RUN_PENDING_H
#define HW_RUN_PENDING_H

#include "core.h"

/* A host tensor that the queue has yet to write. */
struct pending_write {
    struct pending_write *next;
    uint64_t begin, end; /* addresses */
    struct hw_tensor to; /* the host tensor */
    /* Its elements, contiguous, once the queue has completed; NULL: the device writes them. */
    void *from;
    struct hw_buffer
        *shared; /* the buffer of `from`, from stage_shared(); NULL: it is none */
};

/* Adds a write to the queue's list; takes `write`. */
void pending_add(struct hw_queue *queue, struct pending_write *write);
/* Whether the queue has yet to write any of these bytes. */
bool pending_overlaps(const struct hw_queue *queue, const struct hw_tensor *host);
/* Brings what the host has yet to copy into the order of the queue: what the queue does from now on
 * sees it. */
enum hw_status pending_in_order(struct hw_queue *queue);
/* Performs the writes if the queue has `completed`; empties the list in either case. */
void pending_finish(struct hw_queue *queue, bool completed);

#endif
