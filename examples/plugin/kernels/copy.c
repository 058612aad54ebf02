/* SPDX-License-Identifier: MIT */
/* dst = src, of one type; block types have rows of their own size and are not moved. */
#include "walk.h"

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

const char *plan_copy(struct plan *plan, const struct kernel_row *row, const void *args)
{
    (void)row, (void)args;
    plan->run = run_copy;
    return NULL;
}
