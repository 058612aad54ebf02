/* SPDX-License-Identifier: MIT */
/* slot.h - host memory that a queue uses asynchronously. It is pinned if the device has such
 * memory. */
#ifndef HW_MODEL_SLOT_H
#define HW_MODEL_SLOT_H

#include <hw/hw.h>

#include <stddef.h>

struct slot {
    void *host;
    struct hw_buffer *buffer; /* of the same memory; NULL: it is not pinned */
    struct hw_event *event;   /* NULL: the device has none, and the queue is waited for */
    struct hw_queue *busy;    /* uses the memory */
};

/* Like the functions of <hw/hw.h>, these leave the reason of a failure in hw_message(). */
enum hw_status slot_open(struct slot *slot, struct hw_queue *queue, size_t bytes);

/* After submitting what uses the memory; and until that has completed. */
enum hw_status slot_mark(struct slot *slot, struct hw_queue *queue);
enum hw_status slot_wait(struct slot *slot);

/* The i32 number at `index`, as the destination of a copy. */
enum hw_status slot_i32(const struct slot *slot, size_t index, struct hw_tensor *tensor);

/* The queue must be idle. */
void slot_close(struct slot *slot);

#endif
