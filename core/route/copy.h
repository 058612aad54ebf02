/* SPDX-License-Identifier: MIT */
/* copy.h - copies that need more than the copy op of the queue's device. */
#ifndef HW_ROUTE_COPY_H
#define HW_ROUTE_COPY_H

#include "call/ops.h"
#include "core.h"

/* The full check of a copy. Copies between devices, and between the device and the host if a plain
 * transfer is better, need no op. */
submit_any submit_copy;

#endif
