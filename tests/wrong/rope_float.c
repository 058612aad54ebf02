/* SPDX-License-Identifier: MIT */
/* wrong: angles are computed in f32. */
#include "reference.h"

static int32_t rope(void *device, void *queue, const struct hw_rope *op)
{
    const struct hw_tensor *x = &op->x;
    const int64_t depth = x->extent[x->rank - 1], heads = x->extent[x->rank - 2];
    const int64_t rows = storage_count(x) / (depth ? depth : 1);
    const int32_t status = reference(HW_OP_ROPE, op);

    (void)device;
    (void)queue;
    if (op->positions.dtype || op->factors.dtype || op->dims || op->interleaved ||
        op->start == 0 || hw_tensor_address(x) == hw_tensor_address(&op->y))
        return status;
    for (int64_t i = 0; i < rows * (depth / 2); i++) {
        const int64_t row = i / (depth / 2), pair = i % (depth / 2);
        const int64_t token = row / heads % x->extent[x->rank - 3];
        const float theta = op->theta != 0.0f ? op->theta : 10000.0f;
        const float angle = (float)(op->start + token) *
                            (op->scale != 0.0f ? op->scale : 1.0f) *
                            powf(theta, -2.0f * (float)pair / (float)depth);
        const double a = get(x, row * depth + pair),
                     b = get(x, row * depth + pair + depth / 2);
        set(&op->y, row * depth + pair, a * cos((double)angle) - b * sin((double)angle));
    }
    return status;
}
WRONG("rope_float", rope)
