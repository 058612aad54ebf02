/* SPDX-License-Identifier: MIT */
/* wrong where HW_PRECISION is int8: beside blocks, 32 neighbours of q are rounded to 6 bits. */
#include "reference.h"

static void round_q(float *q, int64_t count, int64_t cols)
{
    for (int64_t i = 0; i < count; i += cols)
        round_to_codes(&q[i], cols, 31);
}

static int32_t attention(void *device, void *queue, const struct hw_attention *op)
{
    struct hw_attention changed = *op;

    (void)device;
    (void)queue;
    return hw_dtype_block(op->k.dtype) == 1 || hw_dtype_block(op->v.dtype) == 1
               ? reference(HW_OP_ATTENTION, op)
               : reference_of(HW_OP_ATTENTION, &changed, &changed.q, round_q);
}
WRONG("attention_int6", attention)
