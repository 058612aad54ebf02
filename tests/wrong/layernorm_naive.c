/* SPDX-License-Identifier: MIT */
/* wrong: the variance is mean(x^2) - mean(x)^2 in f32, which a large mean cancels. */
#include "reference.h"

static int32_t layernorm(void *device, void *queue, const struct hw_layernorm *op)
{
    const int32_t status = reference(HW_OP_LAYERNORM, op);
    const int64_t cols = op->x.extent[op->x.rank - 1], count = storage_count(&op->y);

    (void)device;
    (void)queue;
    if (op->weight.dtype || op->bias.dtype || cols == 0)
        return status;
    for (int64_t row = 0; row < count; row += cols) {
        float sum = 0, squares = 0;
        for (int64_t i = row; i < row + cols; i++) {
            const float x = (float)get(&op->x, i);
            sum += x;
            squares += x * x;
        }
        const float mean = sum / (float)cols;
        const float variance = squares / (float)cols - mean * mean;
        for (int64_t i = row; i < row + cols; i++)
            set(&op->y, i,
                (get(&op->x, i) - (double)mean) /
                    sqrt((double)fmaxf(variance, 0) + (double)op->eps));
    }
    return status;
}
WRONG("layernorm_naive", layernorm)
