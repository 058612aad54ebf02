/* SPDX-License-Identifier: MIT */
/* wrong: if a has one value per row and b has many, the two are swapped. */
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
