/* SPDX-License-Identifier: MIT */
/* wrong: if c has more batches than b, batch i of c reads batch i modulo b's number of batches. */
#include "reference.h"

/* The i-th matrix of a tensor of rank 3. */
static struct hw_tensor matrix(const struct hw_tensor *t, int64_t i)
{
    struct hw_tensor m = *t;
    m.offset += (uint64_t)(i * t->stride[0]);
    m.rank = 2;
    for (int axis = 0; axis < 2; axis++) {
        m.extent[axis] = t->extent[axis + 1];
        m.stride[axis] = t->stride[axis + 1];
    }
    m.extent[2] = m.stride[2] = 0;
    return m;
}

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    int32_t status = reference(HW_OP_MATMUL, op);

    (void)device;
    (void)queue;
    if (op->a.rank != 3 || op->b.rank != 3 || op->c.rank != 3 ||
        op->a.extent[0] != op->c.extent[0])
        return status;
    for (int64_t i = 0; !status && i < op->c.extent[0]; i++) {
        struct hw_matmul one = *op;
        one.a = matrix(&op->a, i);
        one.b = matrix(&op->b, i % op->b.extent[0]);
        one.c = matrix(&op->c, i);
        status = reference(HW_OP_MATMUL, &one);
    }
    return status;
}
WRONG("matmul_modulo", matmul)
