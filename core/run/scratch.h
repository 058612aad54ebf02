/* SPDX-License-Identifier: MIT */
/* scratch.h - memory that a queue uses in its own order, and gives back once it has passed. */
#ifndef HW_RUN_SCRATCH_H
#define HW_RUN_SCRATCH_H

#include "core.h"

struct buffer;

/* Scratch: device memory that the queue uses in its own order, or pinned host memory. */
enum hw_status scratch_take(struct hw_queue *queue, uint64_t bytes, uint32_t flags,
                            struct buffer **buffer);
void scratch_give(struct hw_queue *queue, struct buffer *buffer);
/* Freed when the queue has passed. */
void queue_free_later(struct hw_queue *queue, struct buffer *buffer);
/* Host memory until the queue has passed, all of `*pinned` if that is not NULL; NULL: none. */
void *scratch_host(struct hw_queue *queue, uint64_t bytes, struct hw_buffer **pinned);

/* The queue has passed, or never will: nothing of this is used any more. */
void scratch_release(struct hw_queue *queue);

#endif
