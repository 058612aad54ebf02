/* SPDX-License-Identifier: MIT */
/* scratch.h - memory that is reused or freed in a queue's order. */
#ifndef HW_ROUTE_SCRATCH_H
#define HW_ROUTE_SCRATCH_H

#include "core.h"

struct buffer;

/* Take and return device memory that is reused in the queue's order, or pinned host memory. */
enum hw_status scratch_take(struct hw_queue *queue, uint64_t bytes, uint32_t flags,
                            struct buffer **buffer);
void scratch_give(struct hw_queue *queue, struct buffer *buffer);
/* Frees the buffer when the queue has completed. */
void queue_free_later(struct hw_queue *queue, struct buffer *buffer);
/* Pinned host memory, for scratch_give(); NULL if there is none. */
struct buffer *scratch_pinned(struct hw_queue *queue, uint64_t bytes);
/* Frees all scratch memory: the queue has completed or never will. */
void scratch_release(struct hw_queue *queue);

#endif
