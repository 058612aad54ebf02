/* SPDX-License-Identifier: MIT */
/* launch.c - what the device computes, what it refuses, and the weights that it packs. */
#include "discrete.h"

#include <math.h>

/* ---- what it computes ---- */

/* An operand's element at `index`; an axis of another's that is missing here, or 1,
 * repeats. */
static unsigned char *element(const struct hw_tensor *t, const int64_t index[HW_MAX_RANK],
                              int rank)
{
    uint64_t at = t->offset;
    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] > 1)
            at += (uint64_t)(index[i + rank - t->rank] * t->stride[i]);
    return memory_cells(t->buffer, at);
}

/* The next index; false past the last. */
static bool advance(const struct hw_tensor *t, int64_t index[HW_MAX_RANK])
{
    for (int i = t->rank - 1; i >= 0; i--) {
        if (++index[i] < t->extent[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static float *number(const struct hw_tensor *t, const int64_t index[HW_MAX_RANK], int rank)
{
    return (float *)(void *)element(t, index, rank);
}

static int32_t run_silu(struct queue *queue, struct job *job)
{
    const struct hw_silu *op = &job->u.silu;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do {
        const float x = *number(&op->x, index, op->x.rank);
        *number(&op->y, index, op->y.rank) = x / (1.0f + expf(-x));
    } while (advance(&op->y, index));
    return HW_OK;
}

static int32_t run_add(struct queue *queue, struct job *job)
{
    const struct hw_add *op = &job->u.add;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do
        *number(&op->y, index, op->y.rank) = *number(&op->a, index, op->y.rank) +
                                             *number(&op->b, index, op->y.rank);
    while (advance(&op->y, index));
    return HW_OK;
}

/* The layout of packed weights: a matrix without gaps, whatever its strides say. */
#define LAYOUT_DENSE 1

static void unpack(struct hw_tensor *t)
{
    t->stride[0] = t->extent[1] * (int64_t)sizeof(float);
    t->stride[1] = sizeof(float);
}

/* Matrices; b may be packed. */
static int32_t run_matmul(struct queue *queue, struct job *job)
{
    struct hw_matmul *op = &job->u.matmul;
    const int ta = op->transpose_a != 0, tb = op->transpose_b != 0;
    int64_t c[HW_MAX_RANK] = { 0 };
    (void)queue;
    if (op->b.layout == LAYOUT_DENSE)
        unpack(&op->b);
    do {
        float sum = 0.0f;
        for (int64_t k = 0; k < op->a.extent[1 - ta]; k++) {
            const int64_t a[HW_MAX_RANK] = { ta ? k : c[0], ta ? c[0] : k };
            const int64_t b[HW_MAX_RANK] = { tb ? c[1] : k, tb ? k : c[1] };
            sum += *number(&op->a, a, 2) * *number(&op->b, b, 2);
        }
        *number(&op->c, c, 2) = sum;
    } while (advance(&op->c, c));
    return HW_OK;
}

static int32_t run_copy(struct queue *queue, struct job *job)
{
    const struct hw_copy *op = &job->u.copy;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do
        memcpy(element(&op->dst, index, op->dst.rank),
               element(&op->src, index, op->src.rank),
               (size_t)hw_dtype_bytes(op->src.dtype));
    while (advance(&op->dst, index));
    return HW_OK;
}

job_fn *ops_kernel(uint32_t op)
{
    static job_fn *const kernels[HW_OP_COUNT] = {
        [HW_OP_MATMUL] = run_matmul,
        [HW_OP_SILU] = run_silu,
        [HW_OP_ADD] = run_add,
        [HW_OP_COPY] = run_copy,
    };
    return op < HW_OP_COUNT ? kernels[op] : NULL;
}

/* ---- what it refuses, and how the rest is submitted ---- */

/* Why an op can not be computed, or NULL. Asked by ops_supports(), and by every op before it
 * touches anything. */
static const char *refusal(uint32_t op, const void *args)
{
    switch (op) {
    case HW_OP_SILU:
        return ((const struct hw_silu *)args)->x.dtype == HW_F32 ? NULL : "silu is for f32";
    case HW_OP_ADD:
        return ((const struct hw_add *)args)->y.dtype == HW_F32 ? NULL : "add is for f32";
    case HW_OP_MATMUL: {
        const struct hw_matmul *m = args;
        if (m->a.dtype != HW_F32 || m->b.dtype != HW_F32 || m->c.dtype != HW_F32)
            return "matmul is for f32";
        return m->a.rank + m->b.rank + m->c.rank == 6 && !m->bias.dtype
                   ? NULL
                   : "matmul is for two matrices without bias";
    }
    case HW_OP_COPY: {
        const struct hw_copy *copy = args;
        if (copy->src.dtype != copy->dst.dtype)
            return "copy converts nothing";
        return hw_dtype_block(copy->src.dtype) == 1 ? NULL : "copy moves no blocks";
    }
    default:
        return "it has no kernel for this op";
    }
}

int32_t ops_supports(void *self, uint32_t op, const void *args, char *why, size_t why_size,
                     uint64_t *scratch)
{
    (void)self;
    const char *words = refusal(op, args);
    *scratch = 0;
    if (words)
        snprintf(why, why_size, "%s", words);
    return words ? HW_UNSUPPORTED : HW_OK;
}

/* The struct and its buffers are copied: they are the caller's again when this returns. */
#define OP(NAME, name, OPERANDS)                                                           \
    static int32_t name(void *device, void *self, const struct hw_##name *op)              \
    {                                                                                      \
        struct queue *queue = self;                                                        \
        const char *words = refusal(HW_OP_##NAME, op);                                     \
        int n = 0;                                                                         \
        (void)device;                                                                      \
        if (words)                                                                         \
            return hw_fail(queue->device->instance->host, HW_UNSUPPORTED, "%s", words);    \
        struct job *job = queue_job(queue, run_##name);                                    \
        if (!job)                                                                          \
            return queue_no_job(queue);                                                    \
        job->u.name = *op;                                                                 \
        OPERANDS(KEEP)                                                                     \
        return queue_submit(queue, job);                                                   \
    }
#define KEEP(name, field, role)                                                            \
    if (op->field.buffer)                                                                  \
        job->u.name.field.buffer = memcpy(&job->buffers[n++], op->field.buffer,            \
                                          sizeof job->buffers[0]);
OP(MATMUL, matmul, HW_OPERANDS_MATMUL)
OP(SILU, silu, HW_OPERANDS_SILU)
OP(ADD, add, HW_OPERANDS_ADD)
OP(COPY, copy, HW_OPERANDS_COPY)
#undef KEEP
#undef OP

const struct hw_plugin_ops ops_table = {
    .size = sizeof ops_table, .matmul = matmul, .silu = silu, .add = add, .copy = copy
};

int32_t ops_kernel_info(void *self, uint32_t op, uint32_t index,
                        struct hw_kernel_info *info)
{
    (void)self;
    if (index > 0 || !ops_kernel(op))
        return HW_END;
    const struct hw_kernel_info row = {
        .size = sizeof row, .eligible = 1, .name = "plain", .needs = "f32"
    };
    hw_answer(info, &row);
    return HW_OK;
}

/* ---- packed weights: matrices of f32 without gaps ---- */

int32_t ops_pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                      uint32_t *layout)
{
    if (src->dtype != HW_F32 || src->rank != 2)
        return hw_fail(((struct device *)device)->instance->host, HW_UNSUPPORTED,
                       "packs matrices of f32");
    *bytes = (uint64_t)(src->extent[0] * src->extent[1]) * sizeof(float);
    *layout = LAYOUT_DENSE;
    return HW_OK;
}

int32_t ops_pack(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct hw_copy op = { .src = *src, .dst = *dst };
    unpack(&op.dst);
    return copy(((struct queue *)queue)->device, queue, &op);
}
