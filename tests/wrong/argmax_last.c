/* SPDX-License-Identifier: MIT */
/* wrong: among equal elements the last one wins. */
#include "reference.h"

static int32_t argmax(void *device, void *queue, const struct hw_argmax *op)
{
    const int32_t status = reference(HW_OP_ARGMAX, op);
    const int64_t cols = op->x.extent[op->x.rank - 1];

    (void)device;
    (void)queue;
    for (int64_t row = 0; row < storage_count(&op->y); row++)
        for (int64_t i = 0; i < cols; i++)
            if (get(&op->x, row * cols + i) ==
                get(&op->x, row * cols + (int64_t)get(&op->y, row)))
                set(&op->y, row, (double)i);
    return status;
}
WRONG("argmax_last", argmax)
