/* SPDX-License-Identifier: MIT */
/* wrong: the largest element is not subtracted before the exponential. */
#include "reference.h"

static int32_t softmax(void *device, void *queue, const struct hw_softmax *op)
{
    const int32_t status = reference(HW_OP_SOFTMAX, op);
    const int64_t cols = op->x.extent[op->x.rank - 1];

    (void)device;
    (void)queue;
    for (int64_t i = 0; i < storage_count(&op->x); i++)
        if ((double)op->scale == 0 && !op->mask.dtype && op->x.dtype == HW_F32 &&
            cols < 100 && isinf(expf((float)get(&op->x, i))))
            set(&op->y, i, (double)NAN);
    return status;
}
WRONG("softmax_overflow", softmax)
