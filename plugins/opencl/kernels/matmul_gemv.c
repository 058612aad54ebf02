/* SPDX-License-Identifier: MIT */
/* Plans matmul_gemv.cl: one row of a in each matrix, and b stored [n,k], in floats or q4_K. */
#include "matmul.h"

enum { LANES = 32, ROWS = 2, MOST_ITEMS = 128 }; /* as in matmul_gemv.cl */

static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const struct matmul_args *m = &l->args.matmul;
    const uint32_t group = device->group < MOST_ITEMS ? device->group : MOST_ITEMS;
    *launch = (struct launch){
        .program = TUNED_MATMUL_GEMV + matmul_float(m->a_type) * MATMUL_TYPES +
                   matmul_type(m->b_type),
        .group = group,
        .groups = matmul_batches(l) * matmul_pieces(m->n, (int64_t)group / LANES * ROWS),
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    const uint32_t number = launch->program - TUNED_MATMUL_GEMV;
    (void)device;
    snprintf(options, size, "-DGROUP=%u -DA_TYPE=%s -DB_TYPE=%s", (unsigned)launch->group,
             matmul_types[number / MATMUL_TYPES].name,
             matmul_types[number % MATMUL_TYPES].name);
}

static const struct tuned matmul_gemv = { "matmul_gemv", choose, describe };

kernel_plan_fn plan_matmul_gemv;
const char *plan_matmul_gemv(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    if (m->m != 1)
        return "a has more than one row";
    if (m->k % 8)
        return "k is not a multiple of 8";
    if (matmul_type(m->b_type) == MATMUL_TYPES)
        return "b has a type that this row does not take";
    if (!matmul_is_aligned(m->b, matmul_types[matmul_type(m->b_type)].align) ||
        !matmul_has_fours(m->a, m->a_type, m->k))
        return "an operand is not aligned";
    plan->tuned = &matmul_gemv;
    return NULL;
}
