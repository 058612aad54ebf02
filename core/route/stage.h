/* SPDX-License-Identifier: MIT */
/* stage.h - copies host tensors to a device that cannot access them, and back: at once, in the
 * queue's order, or when the queue is waited for. */
#ifndef HW_ROUTE_STAGE_H
#define HW_ROUTE_STAGE_H

#include "core.h"

/* Copy between a host tensor and the device, counted for an op. The host memory is borrowed until
 * the queue has completed; it is written by the next wait at the latest. */
enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host);
enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from);

/* Whether the op may access its host tensors over the bus, in pinned memory, instead of by
 * transfers. All its operands must be small host tensors: then a kernel that reads one of them many
 * times does not take long. */
bool stage_shares(const struct hw_device *device, uint32_t op, const void *args);
/* Takes pinned memory for an operand, filled with its contents if the op reads them. Return it with
 * scratch_give() after the op. `*buffer` is NULL if the operand must be transferred. */
enum hw_status stage_shared(struct hw_queue *queue, uint32_t op, enum hw_role role,
                            const struct hw_tensor *host, struct buffer **buffer);
/* Copies a result from this memory to `host`, by the next wait at the latest. NULL: the device
 * writes `host` itself. */
enum hw_status stage_back(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                          struct buffer *pinned);

/* ---- host tensors that the queue still has to write ---- */

/* Whether the queue still has to write any of these bytes. */
bool pending_overlaps(const struct hw_queue *queue, const struct hw_tensor *host);
/* Performs the copies that the host still has to make, in the queue's order: later work of the
 * queue sees the results. */
enum hw_status pending_in_order(struct hw_queue *queue);
/* Performs the writes if the queue has `completed`; empties the list in either case. */
void pending_finish(struct hw_queue *queue, bool completed);

#endif
