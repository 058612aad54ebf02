/* SPDX-License-Identifier: MIT */
/* Plans attention_rows.cl: attention on caches of floats, without biases, slopes and sinks. */
#include "matmul.h"

enum {
    MOST_DIM = 256,
    MOST_ROWS = 8,
    ROW_COUNTS = 4
}; /* the first as in attention_rows.cl */

static int64_t groups_of(const struct lowered *l, int64_t rows)
{
    const struct attention_args *a = &l->args.attention;
    const int64_t all = a->queries * (a->heads / a->kv_heads);
    return l->groups / matmul_pieces(all, ATTENTION_ROWS) * matmul_pieces(all, rows);
}

/* As many rows as leave a group for each compute unit. */
static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const uint32_t most = device->group;
    uint32_t doubled = ROW_COUNTS - 1;
    while (doubled && groups_of(l, 1 << doubled) < device->units)
        doubled--;
    const uint32_t wanted = doubled < 2 ? 256 : 128;
    *launch = (struct launch){
        .program = TUNED_ATTENTION_ROWS +
                   ROW_COUNTS * matmul_float(l->args.attention.k_type) + doubled,
        .group = most < wanted ? most : wanted,
        .groups = groups_of(l, 1 << doubled),
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    const uint32_t number = launch->program - TUNED_ATTENTION_ROWS;
    (void)device;
    snprintf(options, size, "-DGROUP=%u -DROWS=%u -DKV_TYPE=%s", (unsigned)launch->group,
             1u << number % ROW_COUNTS, matmul_types[number / ROW_COUNTS].name);
}

static const struct tuned attention_rows = { "attention_rows", choose, describe };

kernel_plan_fn plan_attention_rows;
const char *plan_attention_rows(struct plan *plan, const struct kernel_row *row,
                                const void *args)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const char *why = lower(row->op, args, &plan->lowered);
    if (why)
        return why;
    if (a->k_type != a->v_type)
        return "k and v have two types";
    if (a->head_dim > MOST_DIM || a->value_dim > MOST_DIM || a->value_dim == 0)
        return "heads have no or more than 256 elements";
    if (!matmul_has_fours(a->k, a->k_type, a->head_dim) ||
        !matmul_has_fours(a->v, a->v_type, a->value_dim))
        return "k or v is not aligned";
    plan->tuned = &attention_rows;
    return NULL;
}
