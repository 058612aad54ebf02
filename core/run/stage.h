/* SPDX-License-Identifier: MIT */
/* stage.h - host tensors on their way to a device that cannot read them in place, and back. */
#ifndef HW_RUN_STAGE_H
#define HW_RUN_STAGE_H

#include "core.h"

/* Between a host tensor and the device, for an op that counts it. Host memory is borrowed
 * until the queue has passed; it is written by the next wait at the latest. */
enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host);
enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from);

#endif
