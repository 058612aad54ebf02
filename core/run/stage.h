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

/* Whether the op may read host tensors over the bus, in memory that both sides see, instead of from
 * a transfer: all its operands are small host tensors, so a kernel that reads one of them many
 * times does not do much. Results are transferred in any case, in the order of the queue. */
bool stage_shares(const struct hw_device *device, uint32_t op, const void *args);
/* Copies an input to such memory, for scratch_give() after the op; `*buffer` is NULL if it must be
 * transferred. */
enum hw_status stage_shared(struct hw_queue *queue, uint32_t op,
                            const struct hw_tensor *host, struct buffer **buffer);

#endif
