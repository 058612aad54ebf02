/* SPDX-License-Identifier: MIT */
/* wrong: a NaN becomes a zero. */
#include "reference.h"

static int32_t mul(void *device, void *queue, const struct hw_mul *op)
{
    const int32_t status = reference(HW_OP_MUL, op);

    (void)device;
    (void)queue;
    for (int64_t i = 0; i < storage_count(&op->y); i++)
        if (isnan(get(&op->y, i)))
            set(&op->y, i, 0);
    return status;
}
WRONG("mul_nan", mul)
