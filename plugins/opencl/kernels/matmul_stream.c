/* SPDX-License-Identifier: MIT */
/* Plans matmul_stream.cl: one row of a in each matrix, and b stored [n,k] in blocks. */
#include "matmul.h"

enum { MOST_ITEMS = 128, TEAM = 32, ROW_COUNTS = 3 }; /* 1, 2 or 4 rows of b */

static const struct {
    int dtype;
    const char *name;
} types[] = {
    { STORAGE_Q8_0, "q8_0" }, { STORAGE_Q4_0, "q4_0" }, { STORAGE_Q4_1, "q4_1" },
    { STORAGE_Q5_0, "q5_0" }, { STORAGE_Q5_1, "q5_1" }, { STORAGE_Q5_K, "q5_K" },
    { STORAGE_Q6_K, "q6_K" },
};
enum { TYPES = sizeof types / sizeof types[0] };
_Static_assert(TYPES *ROW_COUNTS == STREAM_PROGRAMS, "a program for each");

/* TYPES if it is none of them. */
static uint32_t type_of(int dtype)
{
    uint32_t i = 0;
    while (i < TYPES && types[i].dtype != dtype)
        i++;
    return i;
}

/* As many rows as leave some teams for each compute unit. */
static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    enum { TEAMS_OF_A_UNIT = 12 };
    const struct matmul_args *m = &l->args.matmul;
    const uint32_t group = device->group < MOST_ITEMS ? device->group : MOST_ITEMS;
    const int64_t batches = matmul_batches(l);
    uint32_t doubled = ROW_COUNTS - 1;
    while (doubled && batches * m->n >> doubled < (int64_t)device->units * TEAMS_OF_A_UNIT)
        doubled--;
    *launch = (struct launch){
        .program = TUNED_MATMUL_STREAM + type_of(m->b_type) * ROW_COUNTS + doubled,
        .group = group,
        .groups = batches * matmul_pieces(m->n, (int64_t)(group / TEAM) << doubled),
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    const uint32_t number = launch->program - TUNED_MATMUL_STREAM;
    (void)device;
    snprintf(options, size, "-DGROUP=%u -DUNITS_IN_GROUP=1 -DB_TYPE=%s -DROWS=%u",
             (unsigned)launch->group, types[number / ROW_COUNTS].name,
             1u << number % ROW_COUNTS);
}

static const struct tuned matmul_stream = { "matmul_stream", choose, describe };

kernel_plan_fn plan_matmul_stream;
const char *plan_matmul_stream(struct plan *plan, const struct kernel_row *row,
                               const void *args)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    if (m->m != 1)
        return "a has more than one row";
    if (type_of(m->b_type) == TYPES)
        return "b has a type that this row does not take";
    if (!matmul_is_aligned(m->b, 2) || !matmul_has_fours(m->a, m->a_type, m->k))
        return "an operand is not aligned";
    plan->tuned = &matmul_stream;
    return NULL;
}
