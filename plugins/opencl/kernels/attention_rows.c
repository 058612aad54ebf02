/* SPDX-License-Identifier: MIT */
/* Plans attention_rows.cl: attention without biases, slopes and sinks. */
#include "attention.h"

static int64_t groups_of(const struct lowered *l, int64_t rows)
{
    const int64_t all = attention_rows_of_head(&l->args.attention);
    return attention_heads(l) * matmul_pieces(all, rows);
}

/* Chooses the most rows with which each compute unit gets a group. */
static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const uint32_t most = device->group;
    uint32_t doubled = ATTENTION_ROW_COUNTS - 1;
    while (doubled && groups_of(l, 1 << doubled) < device->units)
        doubled--;
    const uint32_t wanted = doubled < 2 ? 256 : 128;
    *launch = (struct launch){
        .program = TUNED_ATTENTION_ROWS +
                   ATTENTION_ROW_COUNTS * matmul_type(l->args.attention.k_type) + doubled,
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
             1u << number % ATTENTION_ROW_COUNTS,
             matmul_types[number / ATTENTION_ROW_COUNTS].name);
}

static const struct tuned attention_rows = { "attention_rows", choose, describe };

kernel_plan_fn plan_attention_rows;
const char *plan_attention_rows(struct plan *plan, const struct kernel_row *row,
                                const void *args)
{
    const char *why = launch_lower(plan, row, args);
    if (!why)
        why = attention_why_not(&plan->lowered.args.attention);
    plan->tuned = &attention_rows;
    return why;
}
