/* SPDX-License-Identifier: MIT */
/* wrong where HW_PRECISION is int8: beside blocks, 32 neighbours of a are rounded to 7 bits. */
#include "reference.h"

static void round_a(float *a, int64_t count, int64_t cols)
{
    for (int64_t i = 0; i < count; i += cols)
        round_to_codes(&a[i], cols, 63);
}

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    struct hw_matmul changed = *op;

    (void)device;
    (void)queue;
    return hw_dtype_block(op->b.dtype) == 1
               ? reference(HW_OP_MATMUL, op)
               : reference_of(HW_OP_MATMUL, &changed, &changed.a, round_a);
}
WRONG("matmul_int7", matmul)
