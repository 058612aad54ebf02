/* SPDX-License-Identifier: MIT */
/* wrong: where an extent of b is smaller than that of y, only its first index is read. */
#include "reference.h"

static int32_t sub(void *device, void *queue, const struct hw_sub *op)
{
    struct hw_sub first = *op;

    (void)device;
    (void)queue;
    for (int32_t i = 1; i <= op->b.rank; i++)
        if (op->b.extent[op->b.rank - i] != op->y.extent[op->y.rank - i])
            first.b.extent[op->b.rank - i] = 1;
    return reference(HW_OP_SUB, &first);
}
WRONG("sub_repeat", sub)
