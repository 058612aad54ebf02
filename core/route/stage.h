/* SPDX-License-Identifier: MIT */
/* stage.h - copies host tensors to a device that cannot access them, and back. */
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
/* Copies a result from this memory to `host`, by the next wait at the latest; see
 * pending_in_order(). */
enum hw_status stage_back(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                          struct buffer *shared);

#endif
