/* SPDX-License-Identifier: MIT */
/* wrong: the kernel is applied upside down, as in a mathematical convolution. */
#include "reference.h"

/* A copy of the f32 weights with their rows in the opposite order. */
static float *flipped(const struct hw_tensor *weight)
{
    const int64_t count = storage_count(weight), kw = weight->extent[3],
                  kh = weight->extent[2];
    float *copy = malloc((size_t)count * sizeof *copy + 1);

    for (int64_t i = 0; copy && i < count; i++) {
        const int64_t row = i / kw, turned = row - row % kh + (kh - 1 - row % kh);
        copy[i] = (float)get(weight, turned * kw + i % kw);
    }
    return copy;
}

static int32_t conv2d(void *device, void *queue, const struct hw_conv2d *op)
{
    struct hw_conv2d wrong = *op;
    struct hw_tensor *weight = &wrong.weight;
    float *copy = flipped(&op->weight);
    int64_t step = sizeof *copy;
    int32_t status = HW_NO_MEMORY;

    (void)device;
    (void)queue;
    weight->buffer = NULL;
    weight->data = copy;
    weight->offset = 0;
    weight->dtype = HW_F32;
    for (int axis = 3; axis >= 0; axis--) {
        weight->stride[axis] = step;
        step *= weight->extent[axis];
    }
    if (copy)
        status = reference(HW_OP_CONV2D, &wrong);
    free(copy);
    return status;
}
WRONG("conv2d_flipped", conv2d)
