/* SPDX-License-Identifier: MIT */
/* pending.h - host tensors that a queue still has to write. */
#ifndef HW_ROUTE_PENDING_H
#define HW_ROUTE_PENDING_H

#include "core.h"

/* A host tensor that the queue still has to write. */
struct pending_write {
    struct pending_write *next;
    uint64_t begin, end; /* addresses */
    struct hw_tensor to; /* the host tensor */
    /* The contiguous elements, complete once the queue has completed. NULL: the device writes the
     * host tensor itself. */
    void *from;
    /* The buffer of `from` if it is from stage_shared(), else NULL. */
    struct hw_buffer *shared;
};

/* Adds a write to the queue's list; takes ownership of `write`. */
void pending_add(struct hw_queue *queue, struct pending_write *write);
/* Whether the queue still has to write any of these bytes. */
bool pending_overlaps(const struct hw_queue *queue, const struct hw_tensor *host);
/* Performs the copies that the host still has to make, in the queue's order: later work of the
 * queue sees the results. */
enum hw_status pending_in_order(struct hw_queue *queue);
/* Performs the writes if the queue has `completed`; empties the list in either case. */
void pending_finish(struct hw_queue *queue, bool completed);

#endif
