/* SPDX-License-Identifier: MIT */
/* Plans attention_split.cl and attention_merge.cl: attention with few queries and many keys,
 * divided between several groups. */
#include "attention.h"

enum {
    MOST_ROWS = 8,
    MOST_PARTS = 64,
    PART_KEYS = 64, /* at least; also the work-items of a group, as in attention_split.cl */
    MERGE_ITEMS = 64
};

/* The largest number of parts of the keys. The number of keys is known only when the kernel
 * runs. */
static int64_t parts_of(const struct attention_args *a)
{
    const int64_t parts = matmul_pieces(a->keys_max, PART_KEYS);
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

/* The power of two for which one group has all rows of a head of k. */
static uint32_t doubled_rows(const struct attention_args *a)
{
    uint32_t doubled = 0;
    while (1 << doubled < attention_rows_of_head(a))
        doubled++;
    return doubled;
}

static int64_t rows_of(const struct lowered *l)
{
    return attention_heads(l) * attention_rows_of_head(&l->args.attention);
}

/* ---- parts ---- */

static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const struct attention_args *a = &l->args.attention;
    (void)device;
    *launch = (struct launch){
        .program = TUNED_ATTENTION_SPLIT + ATTENTION_ROW_COUNTS * matmul_type(a->k_type) +
                   doubled_rows(a),
        .group = PART_KEYS,
        .groups = attention_heads(l) * parts_of(a),
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    const uint32_t number = launch->program - TUNED_ATTENTION_SPLIT;
    (void)device;
    snprintf(options, size, "-DGROUP=%d -DROWS=%u -DKV_TYPE=%s -DMOST_PARTS=%d", PART_KEYS,
             1u << number % ATTENTION_ROW_COUNTS,
             matmul_types[number / ATTENTION_ROW_COUNTS].name, MOST_PARTS);
}

static const struct tuned attention_split = { "attention_split", choose, describe };

/* ---- merging ---- */

static void choose_merge(const struct device *device, const struct lowered *l,
                         struct launch *launch)
{
    (void)device;
    *launch = (struct launch){ .program = TUNED_ATTENTION_MERGE,
                               .group = MERGE_ITEMS,
                               .groups = rows_of(l) };
}

static void describe_merge(const struct device *device, const struct launch *launch,
                           char *options, size_t size)
{
    (void)device, (void)launch;
    snprintf(options, size, "-DGROUP=%d -DMOST_PARTS=%d -DPART_KEYS=%d", MERGE_ITEMS,
             MOST_PARTS, PART_KEYS);
}

static const struct tuned attention_merge = { "attention_merge", choose_merge,
                                              describe_merge };

kernel_plan_fn plan_attention_split;
const char *plan_attention_split(struct plan *plan, const struct kernel_row *row,
                                 const void *args)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const char *why = launch_lower(plan, row, args);
    if (!why)
        why = attention_why_not(a);
    if (why || !plan->lowered.groups)
        return why;
    if (attention_rows_of_head(a) > MOST_ROWS)
        return "more than 8 rows read a head of k";
    if (a->keys_max <= PART_KEYS)
        return "there are at most 64 keys";
    /* A row's result for a part: its values, its largest score and its sum. */
    if (__builtin_mul_overflow(rows_of(&plan->lowered) * parts_of(a),
                               (a->value_dim + 2) * (int64_t)sizeof(float),
                               &plan->workspace) ||
        attention_heads(&plan->lowered) * parts_of(a) > INT32_MAX ||
        rows_of(&plan->lowered) > INT32_MAX)
        return "there are too many rows";
    plan->tuned = &attention_split;
    plan->second = &attention_merge;
    return NULL;
}
