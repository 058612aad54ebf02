/* SPDX-License-Identifier: MIT */
/* wrong: gate and up have changed places. */
#include "reference.h"

static int32_t glu(void *device, void *queue, const struct hw_glu *op)
{
    struct hw_glu other = *op;

    (void)device;
    (void)queue;
    if (op->up.dtype) {
        other.gate = op->up;
        other.up = op->gate;
    }
    return reference(HW_OP_GLU, &other);
}
WRONG("glu_swapped", glu)
