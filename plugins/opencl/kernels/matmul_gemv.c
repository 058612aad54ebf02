/* SPDX-License-Identifier: MIT */
/* Plans matmul_gemv.cl: one row of a in each matrix, and b stored [n,k]. */
#include "matmul.h"

enum { LANES = 32, ROWS = 2, MOST_ITEMS = 128 }; /* as in matmul_gemv.cl */

/* In the order of the programs' numbers. */
static const struct type {
    int dtype;
    const char *name;
    int64_t align; /* bytes */
} types[] = {
    { STORAGE_F32, "f32", 16 },  { STORAGE_F16, "f16", 8 },   { STORAGE_BF16, "bf16", 8 },
    { STORAGE_Q8_0, "q8_0", 2 }, { STORAGE_Q4_0, "q4_0", 2 }, { STORAGE_Q4_K, "q4_K", 16 },
};
enum { TYPES = sizeof types / sizeof types[0] };

static uint32_t type_of(int dtype)
{
    uint32_t i = 0;
    while (i < TYPES && types[i].dtype != dtype)
        i++;
    return i;
}

static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const struct matmul_args *m = &l->args.matmul;
    const uint32_t group = device->group < MOST_ITEMS ? device->group : MOST_ITEMS;
    *launch = (struct launch){
        .program = TUNED_MATMUL_GEMV + matmul_float(m->a_type) * TYPES + type_of(m->b_type),
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
             matmul_float_name[number / TYPES], types[number % TYPES].name);
}

static const struct tuned matmul_gemv = { "matmul_gemv", choose, describe };

static bool is_aligned(struct place p, int64_t align)
{
    return p.offset % align == 0 && p.stride[0] % align == 0 && p.stride[1] % align == 0 &&
           p.stride[2] % align == 0;
}

kernel_plan_fn plan_matmul_gemv;
const char *plan_matmul_gemv(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const char *why = lower(row->op, args, &plan->lowered);
    if (why)
        return why;
    if (m->m != 1)
        return "a has more than one row";
    if (m->k % 8)
        return "k is not a multiple of 8";
    if (type_of(m->b_type) == TYPES)
        return "b has a type that this row does not take";
    if (!is_aligned(m->b, types[type_of(m->b_type)].align) ||
        !matmul_has_fours(m->a, m->a_type, m->k))
        return "an operand is not aligned";
    plan->tuned = &matmul_gemv;
    return NULL;
}
