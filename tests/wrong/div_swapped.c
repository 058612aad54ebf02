/* SPDX-License-Identifier: MIT */
/* wrong: where a has one value per row and b has not, as if both had swapped places. */
#include "reference.h"

static int32_t divide(void *device, void *queue, const struct hw_div *op)
{
    struct hw_div swapped = *op;

    (void)device;
    (void)queue;
    if (op->a.extent[op->a.rank - 1] == 1 && op->b.extent[op->b.rank - 1] != 1) {
        swapped.a = op->b;
        swapped.b = op->a;
    }
    return reference(HW_OP_DIV, &swapped);
}
WRONG_BY("div_swapped", div, divide)
