/* SPDX-License-Identifier: MIT */
/* Plans matmul_round.cl and matmul_dots.cl: products of bytes with weights of block types. */
#include "matmul.h"

enum { LARGE = 64, SMALL = 32, ROUND_ITEMS = 64 };
enum { UNIT = 32, UNIT_BYTES = 12 * sizeof(uint32_t) }; /* as in matmul_round.cl */

/* Of what rows of a become, at most: others take longer than those that are not rounded. */
static const int64_t most_workspace = 256 << 20;

static const struct {
    int dtype;
    const char *name;
} types[] = {
    { STORAGE_Q8_0, "q8_0" }, { STORAGE_Q4_0, "q4_0" }, { STORAGE_Q4_1, "q4_1" },
    { STORAGE_Q5_0, "q5_0" }, { STORAGE_Q5_1, "q5_1" }, { STORAGE_Q4_K, "q4_K" },
    { STORAGE_Q5_K, "q5_K" }, { STORAGE_Q6_K, "q6_K" },
};
enum { TYPES = sizeof types / sizeof types[0] };
_Static_assert(2 * TYPES == DOTS_PROGRAMS, "a program for each");

/* TYPES if it is none of them. */
static uint32_t type_of(int dtype)
{
    uint32_t i = 0;
    while (i < TYPES && types[i].dtype != dtype)
        i++;
    return i;
}

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

/* The large tile, if there are enough of them for all units. */
static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const bool large = device->group >= LARGE * LARGE / 16 &&
                       dots_groups(l, LARGE) >= device->units;
    const int tile = large ? LARGE : SMALL;
    *launch = (struct launch){
        .program = TUNED_MATMUL_DOTS + 2 * type_of(l->args.matmul.b_type) + large,
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
             (unsigned)launch->group, number % 2 ? LARGE : SMALL, types[number / 2].name,
             device->dots ? " -DHAS_DOTS" : "");
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
    if (type_of(m->b_type) == TYPES)
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
