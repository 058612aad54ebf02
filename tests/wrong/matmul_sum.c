/* SPDX-License-Identifier: MIT */
/* wrong: every sum lacks its last term. */
#include "reference.h"

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    struct hw_matmul part = *op;
    const int32_t a = op->a.rank - (op->transpose_a ? 2 : 1);
    const int32_t b = op->b.rank - (op->transpose_b ? 1 : 2);

    (void)device;
    (void)queue;
    if (part.a.extent[a] > 0 && !storage_is_block(op->b.dtype)) {
        part.a.extent[a]--;
        part.b.extent[b]--;
    }
    return reference(HW_OP_MATMUL, &part);
}
WRONG("matmul_sum", matmul)
