/* SPDX-License-Identifier: MIT */
/* wrong: the slopes are ignored if there is a bias. */
#include "reference.h"

static int32_t attention(void *device, void *queue, const struct hw_attention *op)
{
    struct hw_attention part = *op;

    (void)device;
    (void)queue;
    if (op->bias.dtype)
        part.slopes.dtype = HW_NONE;
    return reference(HW_OP_ATTENTION, &part);
}
WRONG("attention_slopes", attention)
