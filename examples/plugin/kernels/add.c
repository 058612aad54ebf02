/* SPDX-License-Identifier: MIT */
/* y = a + b, in f32. */
#include "walk.h"

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

const char *plan_add(struct plan *plan, const struct kernel_row *row, const void *args)
{
    (void)row, (void)args;
    plan->run = run_add;
    return NULL;
}
