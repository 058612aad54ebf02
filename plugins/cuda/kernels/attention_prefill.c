/* SPDX-License-Identifier: MIT */
/* Plans and launches attention_prefill.cu: many queries, in 16 bits. With HALVES, q may be f32: it
 * is first rounded to f16 in the workspace. */
#include "../launch.h"

#include "common/lowering.h"

#include "attention_prefill.h"

/* A tensor of [batch, token, head, number] in 16 bits. */
struct heads {
    uint64_t address;
    int64_t batches, tokens, heads, numbers;
    int64_t stride[3]; /* bytes: batch, token, head */
    int32_t type;
};

static struct heads heads_of(const struct hw_tensor *t, const struct place *place)
{
    return (struct heads){
        .address = launch_base(t) + (uint64_t)place->offset,
        .batches = extent_of(t, 3),
        .tokens = extent_of(t, 2),
        .heads = extent_of(t, 1),
        .numbers = cols_of(t),
        .stride = { place->stride[0], place->stride[1], place->stride[2] },
        .type = t->dtype,
    };
}

/* q as stored by prefill_round. */
static struct heads rounded_of(const struct heads *q, uint64_t workspace)
{
    struct heads to = *q;
    to.address = workspace;
    to.type = HW_F16;
    to.stride[2] = q->numbers * 2;
    to.stride[1] = q->heads * to.stride[2];
    to.stride[0] = q->tokens * to.stride[1];
    return to;
}

/* Whether the copy engine, or vectors of 16 bytes, can read it. */
static bool is_aligned(const struct heads *x)
{
    const int64_t extent[] = { x->batches, x->tokens, x->heads };
    uint64_t all = x->address;
    for (int i = 0; i < 3; i++) {
        all |= (uint64_t)x->stride[i];
        if (extent[i] > 1 && x->stride[i] <= 0)
            return false;
    }
    return all % 16 == 0;
}

/* Describes a tensor to the copy engine, for boxes of 64 numbers of some tokens and heads. */
static int32_t describe(const struct launcher *at, const struct heads *x, int64_t tokens,
                        int64_t heads, struct tensor_map *map)
{
    const uint64_t extents[] = { (uint64_t)x->numbers, (uint64_t)x->heads,
                                 (uint64_t)x->tokens, (uint64_t)x->batches };
    const uint32_t box[] = { 64, (uint32_t)heads, (uint32_t)tokens, 1 };
    const uint32_t steps[] = { 1, 1, 1, 1 };
    uint64_t strides[3];
    for (int i = 0; i < 3; i++) /* the driver refuses 0, the stride of extents of 1 */
        strides[i] = x->stride[2 - i] ? (uint64_t)x->stride[2 - i] : 16;
    return answer(at->device,
                  at->device->cuda->tensor_map_encode(
                      map, x->type == HW_F16 ? TENSOR_F16 : TENSOR_BF16, 4,
                      (void *)(uintptr_t)x->address, extents, strides, box, steps, 0,
                      SWIZZLE_128, PROMOTE_256, 0),
                  "describe a tensor to the copy engine");
}

/* The number of heads that read one head of k and v and share a group: a power of two, or all of
 * them if their number is one. */
static int pack_of(const struct attention_args *a)
{
    const int64_t each = a->heads / a->kv_heads;
    int pack = 1;
    while (pack * 2 <= PREFILL_ROWS && each % (pack * 2) == 0)
        pack *= 2;
    return pack;
}

/* Groups along each axis. */
struct grid {
    int64_t heads, runs, batches;
};

static struct grid grid_of(const struct hw_attention *op, const struct attention_args *a)
{
    const int64_t pack = pack_of(a), each = PREFILL_ROWS / pack;
    return (struct grid){ a->heads / pack, (a->queries + each - 1) / each,
                          extent_of(&op->q, 3) };
}

static int32_t round_q(const struct launcher *at, const struct attention_args *a,
                       const struct heads *q)
{
    const int64_t count = q->batches * q->tokens * q->heads * q->numbers;
    const struct prefill_round_args args = {
        .place = { 0, { q->stride[0], q->stride[1], q->stride[2] } },
        .to = at->workspace,
        .q = q->address,
        .count = count,
        .queries = q->tokens,
        .heads = q->heads,
        .dim = a->head_dim,
        .scale = a->scale,
    };
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = TUNED_prefill_round,
            .groups = { (unsigned)((count / 4 + PREFILL_ROUND - 1) / PREFILL_ROUND), 1, 1 },
            .threads = PREFILL_ROUND,
            .early = true,
        },
        &args);
}

static int32_t describe_all(const struct launcher *at, const struct hw_attention *op,
                            const struct heads *q, struct prefill_args *args)
{
    const struct heads k = heads_of(&op->k, &args->a.k), v = heads_of(&op->v, &args->a.v);
    int32_t status = describe(at, q, PREFILL_ROWS / args->pack, args->pack, &args->q);
    if (!status)
        status = describe(at, &k, PREFILL_KEYS, 1, &args->k);
    if (!status)
        status = describe(at, &v, PREFILL_KEYS, 1, &args->v);
    return status;
}

static int32_t launch_prefill(const struct launcher *at, const struct plan *plan,
                              const void *op_args)
{
    const struct hw_attention *op = op_args;
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct grid grid = grid_of(op, a);
    struct heads q = heads_of(&op->q, &a->q);
    struct prefill_args args = {
        .a = *a,
        .y = launch_base(&op->y) + (uint64_t)a->y.offset,
        .sinks = launch_base(&op->sinks) + (uint64_t)a->sinks_offset,
        .lengths = launch_base(&op->lengths) + (uint64_t)a->lengths_offset,
        .heads_each = (int)(a->heads / a->kv_heads),
        .pack = pack_of(a),
    };
    int32_t status = HW_OK;
    if (a->window >= a->keys_max)
        args.a.window = 0;
    if (q.type == HW_F32) {
        status = round_q(at, a, &q);
        q = rounded_of(&q, at->workspace);
        args.a.scale = 1.0f;
    }
    if (!status)
        status = describe_all(at, op, &q, &args);
    if (status)
        return status;
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = tuned_of(a->head_dim == 128 ? FAMILY_prefill_128 : FAMILY_prefill_64,
                               op->k.dtype),
            .groups = { (unsigned)grid.heads, (unsigned)grid.runs, (unsigned)grid.batches },
            .threads = PREFILL_THREADS,
            .shared = (unsigned)PREFILL_SHARED(a->head_dim),
            .early = true,
        },
        &args);
}

/* Returns the reason why types or sizes do not suit, or NULL. */
static const char *why_not(const struct hw_attention *op, const struct attention_args *a,
                           bool halves)
{
    const bool rounds = halves && op->q.dtype == HW_F32 && op->k.dtype == HW_F16;
    if (a->bias_type || a->has_slopes || a->softcap > 0.0f || !(a->scale > 0.0f))
        return "bias, slopes, softcap and a scale below 0 are not supported";
    if ((op->k.dtype != HW_F16 && op->k.dtype != HW_BF16) || op->v.dtype != op->k.dtype)
        return "k and v must be both f16 or both bf16";
    if (op->q.dtype != op->k.dtype && !rounds)
        return "q has a type that this row does not take";
    if (a->head_dim != a->value_dim || (a->head_dim != 64 && a->head_dim != 128))
        return "heads must have 64 or 128 elements";
    return NULL;
}

/* Whether many units have enough work without splits of the keys. */
static bool is_much(const struct attention_args *a, const struct grid *grid)
{
    enum { FEWEST_QUERIES = 16, FEW_KEYS = 1024, FEWEST_GROUPS = 32 };
    return a->heads > 0 && a->queries >= FEWEST_QUERIES &&
           (a->keys_max <= FEW_KEYS ||
            grid->heads * grid->runs * grid->batches >= FEWEST_GROUPS);
}

static bool fits(const struct attention_args *a, const struct grid *grid)
{
    enum { MOST_KEYS = 1 << 30, MOST_HIGH = 65535 };
    return a->keys_max <= MOST_KEYS && a->queries <= MOST_KEYS / 128 / a->heads &&
           grid->runs <= MOST_HIGH && grid->batches <= MOST_HIGH;
}

kernel_plan_fn plan_attention_prefill;
const char *plan_attention_prefill(struct plan *plan, const struct kernel_row *row,
                                   const void *args)
{
    const struct hw_attention *op = args;
    const char *why = launch_lower(plan, row, args);
    const struct attention_args *a = &plan->lowered.args.attention;
    if (!why)
        why = why_not(op, a, row->needs & HALVES);
    if (why)
        return why;
    const struct heads q = heads_of(&op->q, &a->q), k = heads_of(&op->k, &a->k),
                       v = heads_of(&op->v, &a->v), y = heads_of(&op->y, &a->y);
    const struct grid grid = grid_of(op, a);
    if (!is_aligned(&q) || !is_aligned(&k) || !is_aligned(&v) || !is_aligned(&y))
        return "operands must begin at multiples of 16 bytes";
    if (!is_much(a, &grid) || !fits(a, &grid))
        return "too few or too many queries";
    plan->launch = launch_prefill;
    if (q.type == HW_F32)
        plan->workspace = (uint64_t)(q.batches * q.tokens * q.heads * q.numbers) * 2;
    return NULL;
}
