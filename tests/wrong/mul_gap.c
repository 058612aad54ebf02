/* SPDX-License-Identifier: MIT */
/* wrong: the gaps between rows are written as well. */
#include "reference.h"

static int32_t mul(void *device, void *queue, const struct hw_mul *op)
{
    const int32_t status = reference(HW_OP_MUL, op);
    const struct hw_tensor *y = &op->y;
    const int64_t row = y->extent[y->rank - 1] * hw_dtype_bytes(y->dtype);

    (void)device;
    (void)queue;
    if (y->rank >= 2 && storage_count(y) && y->extent[y->rank - 2] > 1 &&
        y->stride[y->rank - 2] > row)
        memset((char *)hw_tensor_address(y) + row, 0,
               (size_t)(y->stride[y->rank - 2] - row));
    return status;
}
WRONG("mul_gap", mul)
