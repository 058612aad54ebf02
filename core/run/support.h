/* SPDX-License-Identifier: MIT */
/* support.h - whether a device computes an op, asked of its plugin without running it. */
#ifndef HW_RUN_SUPPORT_H
#define HW_RUN_SUPPORT_H

#include "core.h"
#include "run/ops.h"

/* Whether the device, awake, takes this struct as it is; HW_UNSUPPORTED says why not. */
enum hw_status plugin_supports(struct hw_device *device, uint32_t op, const void *args);

/* Whether the device, awake, computes the op if its views are copied and its host tensors
 * staged. Nothing behind their addresses is looked at. `as`: the same op, with flags for those
 * views that need no copy then. HW_UNSUPPORTED says why not. */
enum hw_status device_computes(struct hw_device *device, uint32_t op, const void *args,
                               union any_op *as);

/* ---- what has to stand in for an operand ---- */

bool innermost_strided(const struct hw_tensor *t);
/* Whether the operand is in host memory that the device cannot reach. */
bool must_stage(const struct hw_device *device, const struct hw_tensor *t);
bool must_replace(const struct hw_device *device, uint32_t op, const struct hw_tensor *t);
/* The same elements, contiguous. */
enum hw_status dense_like(const struct hw_tensor *t, const char *name,
                          struct hw_tensor *dense, uint64_t *bytes);
/* What is empty needs no copy, and its strides are not to matter to a plugin. */
void straighten_empty(uint32_t op, struct hw_tensor *t);
/* The copy of a view to or from its contiguous stand-in `dense`; repeated axes once. */
struct hw_copy copy_of_view(const struct hw_tensor *dst, const struct hw_tensor *src,
                            const struct hw_tensor *dense);

#endif
