/* SPDX-License-Identifier: MIT */
/* Plans matmul_stream.cl: one row of a in each matrix, and b stored [n,k] in blocks. */
#include "matmul.h"

enum { MOST_ITEMS = 128, TEAM = 32, ROW_COUNTS = 3 }; /* 1, 2 or 4 rows of b */

/* All but the last type, which takes less time in matmul_gemv.cl. */
enum { TYPES = MATMUL_BLOCKS - 1 };
_Static_assert(TYPES *ROW_COUNTS == STREAM_PROGRAMS, "a program for each");

/* Chooses the most rows with which each compute unit gets some teams. */
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
        .program = TUNED_MATMUL_STREAM + matmul_block_type(m->b_type) * ROW_COUNTS +
                   doubled,
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
             (unsigned)launch->group, matmul_blocks[number / ROW_COUNTS].name,
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
    if (matmul_block_type(m->b_type) >= TYPES)
        return "b has a type that this row does not take";
    if (!matmul_is_aligned(m->b, 2) || !matmul_has_fours(m->a, m->a_type, m->k))
        return "an operand is not aligned";
    plan->tuned = &matmul_stream;
    return NULL;
}
