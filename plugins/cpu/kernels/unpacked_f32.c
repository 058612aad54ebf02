/* SPDX-License-Identifier: MIT */
/* matmul of few rows of a, and matmul_id, with unpacked weights of block types, in f32: dot
 * products with rows of b, as they are in a mapped file. Weights are rounded as in the portable
 * kernels; only the order of sums differs. */
#include "unpacked.h"

DECLARE_PLAN(unpacked);
DECLARE_PLAN(experts);

#define X(NAME, name, elements, head, run)                                                 \
    STRIP_FN(one_##name, NAME, 1, in_floats)                                               \
    STRIP_FN(two_##name, NAME, 2, in_floats)                                               \
    STRIP_FN(four_##name, NAME, MOST_TOKENS, in_floats)
PACKED_TYPES(X)
#undef X

static struct strip_fns fns_of(int type)
{
    switch (type) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        return (struct strip_fns){ one_##name, two_##name, four_##name };
        PACKED_TYPES(X)
#undef X
    default:
        return (struct strip_fns){ 0 };
    }
}

static void multiply(const struct plan *plan, struct square *q, uint32_t thread)
{
    const struct strip_fns fns = fns_of(lines_of(plan).b_type);
    (void)thread;
    for (int64_t i = 0; i < q->count; i++)
        q->strip.x[i] = row_of_x(plan, q->a[i]);
    multiply_by(&fns, &q->strip, q->count);
    for (int64_t i = 0; i < q->count; i++)
        put_square(q, i);
}

static void run_groups(const struct plan *plan, int64_t group, int64_t end, uint32_t thread)
{
    for (; group < end; group++)
        multiply_group(plan, group, multiply, thread);
}

/* More rows are multiplied by panels (blocks_f32), which took less time when measured for each
 * type: with AVX-512, for most types even with one row. With NEON, nothing was timed. */
static int64_t most_rows(int type)
{
#if defined(__AVX512F__)
    static const uint8_t most[HW_DTYPE_END] = { [HW_Q8_0] = 2, [HW_Q6_K] = 4 };
#elif defined(__AVX2__)
    static const uint8_t most[HW_DTYPE_END] = {
        [HW_Q8_0] = 2, [HW_Q4_0] = 1, [HW_Q4_1] = 1, [HW_Q5_0] = 4,
        [HW_Q5_1] = 4, [HW_Q4_K] = 1, [HW_Q5_K] = 1, [HW_Q6_K] = 2
    };
#else
    static const uint8_t most[HW_DTYPE_END] = {
        [HW_Q8_0] = 8, [HW_Q4_0] = 8, [HW_Q4_1] = 8, [HW_Q5_0] = 8,
        [HW_Q5_1] = 8, [HW_Q4_K] = 8, [HW_Q5_K] = 8, [HW_Q6_K] = 8
    };
#endif
    return most[type];
}

/* The common part of both rows' plans; returns NULL. */
static const char *plan_floats(struct plan *plan)
{
    plan->run = run_groups;
    plan->work /= 2;
    plan_prepare(plan, prepare_floats, float_row_bytes(plan));
    return NULL;
}

const char *PLAN(unpacked)(struct plan *plan, const struct kernel_row *row,
                           const void *args)
{
    const char *why = plan_unpacked(plan, row, args, most_rows);
    return why || plan->groups == 0 ? why : plan_floats(plan);
}

/* If more rows than this choose an expert, the portable kernel is faster, because it converts
 * weights once for many rows (AMD EPYC Zen 4: twice as fast at 64). */
enum { ROWS_OF_EXPERT = 24 };

const char *PLAN(experts)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const char *why = plan_unpacked(plan, row, args, most_rows);
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    if (why || plan->groups == 0)
        return why;
    if (m->tokens * m->used / ROWS_OF_EXPERT > m->experts)
        return "too many rows per expert";
    return plan_floats(plan);
}
