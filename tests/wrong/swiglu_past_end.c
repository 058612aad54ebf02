/* SPDX-License-Identifier: MIT */
/* wrong: one element too many is written. */
#include "reference.h"

static int32_t swiglu(void *device, void *queue, const struct hw_swiglu *op)
{
    const int32_t status = reference(HW_OP_SWIGLU, op);
    const int64_t count = storage_count(&op->y);

    (void)device;
    (void)queue;
    if (count)
        memset((char *)element(&op->y, count - 1) + hw_dtype_bytes(op->y.dtype), 0,
               (size_t)hw_dtype_bytes(op->y.dtype));
    return status;
}
WRONG("swiglu_past_end", swiglu)
