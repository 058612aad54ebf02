/* SPDX-License-Identifier: MIT */
/* wrong: the bias is added before x is scaled. */
#include "reference.h"

static int32_t scale(void *device, void *queue, const struct hw_scale *op)
{
    struct hw_scale other = *op;

    (void)device;
    (void)queue;
    other.bias *= op->scale;
    return reference(HW_OP_SCALE, &other);
}
WRONG("scale_bias", scale)
