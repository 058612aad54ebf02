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

/* Small host tensors need no transfers where the device can use memory that the host sees: the op
 * is given such memory instead. Takes it, or answers NULL. */
struct buffer *stage_take(struct hw_queue *queue, const struct hw_tensor *host,
                          uint64_t bytes);
/* Copies a host tensor there, before the op; and back, by the next wait at the latest. */
enum hw_status stage_fill(struct hw_queue *queue, uint32_t op, const struct buffer *buffer,
                          const struct hw_tensor *host);
enum hw_status stage_fetch(struct hw_queue *queue, uint32_t op,
                           const struct hw_tensor *host, const struct buffer *buffer);

#endif
