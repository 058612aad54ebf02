/* SPDX-License-Identifier: MIT */
/* wrong: of two equal elements that are both chosen, the one with the higher index is first. */
#include "reference.h"

static int32_t top_k(void *device, void *queue, const struct hw_top_k *op)
{
    const int32_t status = reference(HW_OP_TOP_K, op);
    const int64_t cols = op->x.extent[op->x.rank - 1];
    const int64_t k = op->indices.extent[op->indices.rank - 1];

    (void)device;
    (void)queue;
    for (int64_t i = 1; i < storage_count(&op->indices); i++) {
        const double a = get(&op->indices, i - 1), b = get(&op->indices, i);
        if (i % k && get(&op->x, i / k * cols + (int64_t)a) ==
                         get(&op->x, i / k * cols + (int64_t)b)) {
            set(&op->indices, i - 1, b);
            set(&op->indices, i, a);
        }
    }
    return status;
}
WRONG("top_k_ties", top_k)
