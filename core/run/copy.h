/* SPDX-License-Identifier: MIT */
/* copy.h - copies that need more than the copy op of the queue's device. */
#ifndef HW_RUN_COPY_H
#define HW_RUN_COPY_H

#include "core.h"

/* Does a copy between devices, or between the device and the host if a plain transfer is better,
 * and sets *status. Returns false and does nothing if the copy op should do the copy. */
bool copy_without_op(struct hw_queue *queue, const struct hw_copy *op,
                     enum hw_status *status);

#endif
