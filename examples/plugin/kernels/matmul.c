/* SPDX-License-Identifier: MIT */
/* c = a . b for two matrices of f32; b may be packed. */
#include "walk.h"

static int32_t run_matmul(struct queue *queue, struct job *job)
{
    struct hw_matmul *op = &job->u.matmul;
    const int ta = op->transpose_a != 0, tb = op->transpose_b != 0;
    int64_t c[HW_MAX_RANK] = { 0 };
    (void)queue;
    if (op->b.layout == LAYOUT_DENSE)
        pack_view(&op->b);
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

const char *plan_matmul(struct plan *plan, const struct kernel_row *row, const void *args)
{
    (void)row, (void)args;
    plan->run = run_matmul;
    return NULL;
}
