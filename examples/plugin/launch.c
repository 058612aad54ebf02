/* SPDX-License-Identifier: MIT */
/* launch.c - from an op to a job: the table of rows, which row computes an op, and submitting
 * it to a queue. */
#include "discrete.h"

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0], NULL };

KERNEL_QUERIES

/* Copies the struct and its buffers, because they belong to the caller. */
#define OP(NAME, name, OPERANDS)                                                           \
    static int32_t name(void *device, void *self, const struct hw_##name *op)              \
    {                                                                                      \
        struct queue *queue = self;                                                        \
        struct plan plan;                                                                  \
        const char *why = kernel_plan(&queue->choice, HW_OP_##NAME, op, &plan);            \
        int n = 0;                                                                         \
        (void)device;                                                                      \
        if (why)                                                                           \
            return hw_fail(queue->device->instance->host, HW_UNSUPPORTED, "%s", why);      \
        struct job *job = queue_job(queue, plan.run);                                      \
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

const struct hw_plugin_ops launch_ops = {
    .size = sizeof launch_ops, .matmul = matmul, .silu = silu, .add = add, .copy = copy
};
