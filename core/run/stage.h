/* SPDX-License-Identifier: MIT */
/* stage.h - copies host tensors to a device that cannot access them, and back. */
#ifndef HW_RUN_STAGE_H
#define HW_RUN_STAGE_H

#include "core.h"

/* Copies between a host tensor and the device, counted for an op. The host memory is
 * borrowed until the queue has completed; it is written by the next wait at the latest. */
enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host);
enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from);

/* Whether the op may read and write host tensors over the bus, in memory that both sides see,
 * instead of by transfers: all its operands are small host tensors, so a kernel that reads one of
 * them many times cannot take long. */
bool stage_shares(const struct hw_device *device, uint32_t op, const void *args);
/* Takes such memory for an operand, with its contents if the op reads them; scratch_give() takes it
 * after the op. `*buffer` is NULL if the operand must be transferred. */
enum hw_status stage_shared(struct hw_queue *queue, uint32_t op, enum hw_role role,
                            const struct hw_tensor *host, struct buffer **buffer);
/* Writes a result from it to `host`, by the next wait at the latest; see pending_in_order(). */
enum hw_status stage_back(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                          struct buffer *shared);

#endif
