/* SPDX-License-Identifier: MIT */
/* y = x / (1 + e^-x), in f32. */
#include "walk.h"

#include <math.h>

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

const char *plan_silu(struct plan *plan, const struct kernel_row *row, const void *args)
{
    (void)row, (void)args;
    plan->run = run_silu;
    return NULL;
}
