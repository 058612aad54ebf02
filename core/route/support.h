/* SPDX-License-Identifier: MIT */
/* support.h - asks a plugin whether its device can compute an op. Runs nothing. */
#ifndef HW_ROUTE_SUPPORT_H
#define HW_ROUTE_SUPPORT_H

#include "call/ops.h"
#include "core.h"

/* HW_OK if the device supports this op as it is, else HW_UNSUPPORTED with the reason. The device is
 * awake. */
enum hw_status plugin_supports(struct hw_device *device, uint32_t op, const void *args);

/* HW_OK if the device supports the op once views are copied and host tensors are staged, else
 * HW_UNSUPPORTED with the reason. The device is awake. The memory of the operands is not accessed.
 * `as` gets the op, with flags instead of transposed views where that saves a copy. */
enum hw_status device_computes(struct hw_device *device, uint32_t op, const void *args,
                               union any_op *as);

/* ---- operands that must be replaced ---- */

bool innermost_strided(const struct hw_tensor *t);
/* Whether the operand is in host memory that the device cannot reach. */
bool must_stage(const struct hw_device *device, const struct hw_tensor *t);
bool must_replace(const struct hw_device *device, uint32_t op, const struct hw_tensor *t);
/* Makes an empty operand contiguous: it needs no copy, and plugins need not handle its
 * strides. */
void straighten_empty(uint32_t op, struct hw_tensor *t);
/* The copy of a view to or from its contiguous replacement `dense`, with each repeated axis
 * once. */
struct hw_copy copy_of_view(const struct hw_tensor *dst, const struct hw_tensor *src,
                            const struct hw_tensor *dense);

#endif
