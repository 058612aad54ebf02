/* SPDX-License-Identifier: MIT */
/* wrong: f32 operands lose 13 bits of their significands, as in TF32. */
#include "reference.h"

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    struct hw_matmul short_op = *op;
    struct hw_tensor *a = &short_op.a;
    float *copy = NULL;

    (void)device;
    (void)queue;
    if (a->dtype == HW_F32) {
        const int64_t count = storage_count(a);
        copy = malloc((size_t)count * sizeof *copy + 1);
        if (!copy)
            return HW_NO_MEMORY;
        storage_gather(a, hw_tensor_address(a), (unsigned char *)copy);
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, &copy[i], sizeof bits);
            bits &= 0xffffe000u;
            memcpy(&copy[i], &bits, sizeof bits);
        }
        *a = (struct hw_tensor){ .data = copy, .dtype = HW_F32, .rank = op->a.rank };
        int64_t step = sizeof *copy;
        for (int32_t axis = a->rank - 1; axis >= 0; axis--) {
            a->extent[axis] = op->a.extent[axis];
            a->stride[axis] = step;
            step *= a->extent[axis];
        }
    }
    const int32_t status = reference(HW_OP_MATMUL, &short_op);
    free(copy);
    return status;
}
WRONG("matmul_tf32", matmul)
