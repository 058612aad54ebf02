/* SPDX-License-Identifier: MIT */
/* wrong: sums of f16 products are kept in f16. */
#include "reference.h"

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    const struct hw_tensor *a = &op->a, *b = &op->b, *c = &op->c;
    const int32_t status = reference(HW_OP_MATMUL, op);

    (void)device;
    (void)queue;
    if (a->dtype != HW_F16 || b->dtype != HW_F16 || c->rank != 2 || op->transpose_a ||
        op->transpose_b || op->bias.dtype)
        return status;
    for (int64_t i = 0; i < storage_count(c); i++) {
        const int64_t n = c->extent[1], terms = a->extent[1];
        double sum = 0;
        for (int64_t k = 0; k < terms; k++)
            sum = storage_round(HW_F16,
                                sum + get(a, i / n * terms + k) * get(b, k * n + i % n));
        set(c, i, sum);
    }
    return status;
}
WRONG("matmul_f16_sum", matmul)
