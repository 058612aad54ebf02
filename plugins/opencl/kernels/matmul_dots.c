/* SPDX-License-Identifier: MIT */
/* Plans matmul_round.cl and matmul_dots.cl: products of bytes with weights of block types. */
#include "matmul.h"

enum { LARGE = 64, SMALL = 32, ROUND_ITEMS = 64 };
enum { UNIT = 32, UNIT_BYTES = 12 * sizeof(uint32_t) }; /* as in matmul_round.cl */

/* The most memory for converted rows of a. Other rows of the table compute larger products. */
static const int64_t most_workspace = 256 << 20;

_Static_assert(2 * MATMUL_BLOCKS == DOTS_PROGRAMS, "a program for each");

/* ---- rounding ---- */

static int64_t round_groups(const struct lowered *l)
{
    const struct matmul_args *m = &l->args.matmul;
    return matmul_batches(l) * m->m * matmul_pieces(m->k / UNIT, ROUND_ITEMS);
}

static void choose_round(const struct device *device, const struct lowered *l,
                         struct launch *launch)
{
    (void)device;
    *launch = (struct launch){ .program = TUNED_MATMUL_ROUND,
                               .group = ROUND_ITEMS,
                               .groups = round_groups(l) };
}

static void describe_round(const struct device *device, const struct launch *launch,
                           char *options, size_t size)
{
    (void)device;
    snprintf(options, size, "-DGROUP=%u", (unsigned)launch->group);
}

static const struct tuned matmul_round = { "matmul_round", choose_round, describe_round };

/* ---- products ---- */

static int64_t dots_groups(const struct lowered *l, int tile)
{
    const struct matmul_args *m = &l->args.matmul;
    return matmul_batches(l) * matmul_pieces(m->m, tile) * matmul_pieces(m->n, tile);
}

/* The large tile if that gives all units work. */
static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const bool large = device->group >= LARGE * LARGE / 16 &&
                       dots_groups(l, LARGE) >= device->units;
    const int tile = large ? LARGE : SMALL;
    *launch = (struct launch){
        .program = TUNED_MATMUL_DOTS + 2 * matmul_block_type(l->args.matmul.b_type) + large,
        .group = (uint32_t)(tile * tile / 16),
        .groups = dots_groups(l, tile),
        .dots = true,
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    const uint32_t number = launch->program - TUNED_MATMUL_DOTS;
    snprintf(options, size, "-DGROUP=%u -DUNITS_IN_GROUP=0 -DTILE=%d -DB_TYPE=%s%s",
             (unsigned)launch->group, number % 2 ? LARGE : SMALL,
             matmul_blocks[number / 2].name, device->dots ? " -DHAS_DOTS" : "");
}

static const struct tuned matmul_dots = { "matmul_dots", choose, describe };

kernel_plan_fn plan_matmul_dots;
const char *plan_matmul_dots(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const char *why = launch_lower(plan, row, args);
    if (why || !plan->lowered.groups)
        return why;
    if (matmul_block_type(m->b_type) == MATMUL_BLOCKS)
        return "b has a type that this row does not take";
    if (!m->k)
        return "k is 0";
    if (!matmul_is_aligned(m->b, 2) || !matmul_has_fours(m->a, m->a_type, m->k))
        return "an operand is not aligned";
    if (__builtin_mul_overflow(matmul_batches(&plan->lowered) * m->m,
                               m->k / UNIT * UNIT_BYTES, &plan->workspace) ||
        plan->workspace > (uint64_t)most_workspace ||
        dots_groups(&plan->lowered, SMALL) > INT32_MAX)
        return "there are too many rows";
    plan->tuned = &matmul_round;
    plan->second = &matmul_dots;
    return NULL;
}
