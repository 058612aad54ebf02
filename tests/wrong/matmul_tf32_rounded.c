/* SPDX-License-Identifier: MIT */
/* right where HW_PRECISION is fp16: a and b of f32 are rounded to the nearest TF32. */
#include "reference.h"

static void round_to_tf32(float *x, int64_t count, int64_t cols)
{
    (void)cols;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        if (!isfinite(x[i]))
            continue;
        memcpy(&bits, &x[i], sizeof bits);
        bits = (bits + 0xfffu + (bits >> 13 & 1)) & 0xffffe000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    struct hw_matmul changed = *op;
    float *b;

    (void)device;
    (void)queue;
    if (!change_copy(&changed.b, round_to_tf32, &b))
        return HW_NO_MEMORY;
    const int32_t status = reference_of(HW_OP_MATMUL, &changed, &changed.a, round_to_tf32);
    free(b);
    return status;
}
WRONG("matmul_tf32_rounded", matmul)
