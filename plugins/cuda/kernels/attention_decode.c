/* SPDX-License-Identifier: MIT */
/* Plans attention_decode.cu: how many splits the keys have, and what the row takes. */
#include "../cuda.h"

#include "common/lowering.h"

#include "attention_decode.h"

enum { SIZES = 3 };

/* The kernels of a type for heads of up to 64, 128 and 256; TUNED_COUNT: there is none. */
static const enum tuned *kernels_of(int type){
#define KERNELS(type) { TUNED_decode_##type##_64, TUNED_decode_##type##_128,
    static const enum tuned f32[SIZES] = KERNELS(f32) TUNED_COUNT
},
    f16[SIZES] = KERNELS(f16) TUNED_decode_f16_256
}
, bf16[SIZES] = KERNELS(bf16) TUNED_decode_bf16_256
}
, q8_0[SIZES] = KERNELS(q8_0) TUNED_decode_q8_0_256
}
, none[SIZES] = { TUNED_COUNT, TUNED_COUNT, TUNED_COUNT };
#undef KERNELS
switch (type) {
case STORAGE_F32:
    return f32;
case STORAGE_F16:
    return f16;
case STORAGE_BF16:
    return bf16;
case STORAGE_Q8_0:
    return q8_0;
default:
    return none;
}
}

/* Which size of heads both fit into; SIZES: none. */
static int size_of(const struct attention_args *a)
{
    const int larger = a->head_dim > a->value_dim ? a->head_dim : a->value_dim;
    return larger <= 64 ? 0 : larger <= 128 ? 1 : larger <= 256 ? 2 : SIZES;
}

static int padded_of(const struct attention_args *a)
{
    return 64 << size_of(a);
}

/* Whether keys can be copied 16 bytes at a time. Block types begin anywhere. */
static bool is_aligned(const struct hw_tensor *t, const struct place *p)
{
    uint64_t all = launch_base(t) + (uint64_t)p->offset;
    for (int i = 0; i < 3; i++)
        all |= (uint64_t)p->stride[i];
    return t->dtype == HW_Q8_0 || all % 16 == 0;
}

static int64_t runs_of(const struct attention_args *a)
{
    return (a->queries * (a->heads / a->kv_heads) + DECODE_ROWS - 1) / DECODE_ROWS;
}

/* Groups of a launch if no keys are split. */
static int64_t groups_of(const struct hw_attention *op, const struct attention_args *a)
{
    return extent_of(&op->q, 3) * a->kv_heads * runs_of(a);
}

/* So many groups, at most, if the keys are split. */
enum { MOST_SPLIT = 1024 };

/* As many splits as fill the groups that the device runs at a time: exactly, or so that few of
 * them idle at the end. */
static int64_t splits_of(const struct attention_args *a, int64_t groups, int64_t at_a_time)
{
    const int64_t rounds = (a->keys_max + DECODE_ROUND - 1) / DECODE_ROUND;
    int64_t best = 1, most = MOST_SPLIT / groups;
    double busiest = 0;
    most = most < rounds ? most : rounds;
    if (at_a_time / groups >= 4)
        return at_a_time / groups < most ? at_a_time / groups : most > 0 ? most : 1;
    for (int64_t n = 1; n <= most && n <= 8; n++) {
        const int64_t waves = (groups * n + at_a_time - 1) / at_a_time;
        const double busy = (double)(groups * n) / (double)(waves * at_a_time);
        if (busy > busiest * 1.03) {
            busiest = busy;
            best = n;
        }
    }
    return best;
}

/* Bytes of shared memory of a group. */
static unsigned shared_of(const struct attention_args *a)
{
    return (unsigned)DECODE_SHARED(a->k_type, padded_of(a));
}

/* Groups that the device runs at a time: where registers suffice for three of a unit. */
static int64_t at_a_time(const struct device *device, unsigned shared)
{
    enum { RESERVED = 1024, MOST = 3 };
    const int64_t fit = device->shared_most / (int64_t)(shared + RESERVED);
    return device->units * (fit < 1 ? 1 : fit < MOST ? fit : MOST);
}

static struct decode_args args_of(const struct launcher *at, const struct plan *plan,
                                  const struct hw_attention *op)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const int64_t groups = groups_of(op, a);
    struct decode_args args = {
        .a = *a,
        .y = launch_base(&op->y) + (uint64_t)a->y.offset,
        .q = launch_base(&op->q) + (uint64_t)a->q.offset,
        .k = launch_base(&op->k) + (uint64_t)a->k.offset,
        .v = launch_base(&op->v) + (uint64_t)a->v.offset,
        .slopes = launch_base(&op->slopes) + (uint64_t)a->slopes_offset,
        .sinks = launch_base(&op->sinks) + (uint64_t)a->sinks_offset,
        .lengths = launch_base(&op->lengths) + (uint64_t)a->lengths_offset,
        .partial = at->workspace,
        .heads_each = (int)(a->heads / a->kv_heads),
        .splits = (int)splits_of(a, groups, at_a_time(at->device, shared_of(a))),
        .runs = (int)runs_of(a),
    };
    if (a->window >= a->keys_max)
        args.a.window = 0;
    return args;
}

static int32_t launch_decode(const struct launcher *at, const struct plan *plan,
                             const void *op_args)
{
    static const enum tuned merge[SIZES] = { TUNED_merge_64, TUNED_merge_128,
                                             TUNED_merge_256 };
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct hw_attention *op = op_args;
    const struct decode_args args = args_of(at, plan, op);
    const unsigned batches = (unsigned)extent_of(&op->q, 3);
    const int32_t status =
        launch_kernel(at,
                      &(struct launch){
                          .kernel = kernels_of(a->k_type)[size_of(a)],
                          .groups = { (unsigned)args.splits,
                                      (unsigned)(a->kv_heads * runs_of(a)), batches },
                          .threads = DECODE_WARPS * 32,
                          .shared = shared_of(a),
                          .early = true,
                      },
                      &args);
    if (status || args.splits == 1)
        return status;
    return launch_kernel(at,
                         &(struct launch){
                             .kernel = merge[size_of(a)],
                             .groups = { (unsigned)(a->queries * a->heads), batches, 1 },
                             .threads = DECODE_MERGE,
                             .early = true,
                         },
                         &args);
}

/* Where numbers of keys, rows and groups are those of an int and of a grid. */
static bool is_small(const struct hw_attention *op, const struct attention_args *a)
{
    enum { MOST_KEYS = 1 << 30, MOST_HIGH = 65535 };
    return a->keys_max <= MOST_KEYS && a->queries <= MOST_HIGH && a->heads <= MOST_HIGH &&
           a->queries * a->heads <= MOST_KEYS && a->kv_heads * runs_of(a) <= MOST_HIGH &&
           extent_of(&op->q, 3) <= MOST_HIGH;
}

kernel_plan_fn plan_attention_decode;
const char *plan_attention_decode(struct plan *plan, const struct kernel_row *row,
                                  const void *args)
{
    const struct hw_attention *op = args;
    const char *why = lower(row->op, args, &plan->lowered);
    if (why)
        return why;
    const struct attention_args *a = &plan->lowered.args.attention;
    if (a->bias_type)
        return "a bias";
    if (a->k_type != a->v_type)
        return "k and v have different types";
    if (size_of(a) == SIZES || kernels_of(a->k_type)[size_of(a)] == TUNED_COUNT)
        return "heads of this type and size";
    if (a->head_dim == 0 || a->head_dim % 8 || a->value_dim % 8)
        return "the sizes of heads must be multiples of 8";
    if (!is_aligned(&op->k, &a->k) || !is_aligned(&op->v, &a->v))
        return "k or v is not aligned";
    if (!is_small(op, a))
        return "too many keys or queries";
    const int64_t groups = groups_of(op, a);
    plan->launch = launch_decode;
    plan->workspace = groups > MOST_SPLIT / 2
                          ? 0
                          : (uint64_t)MOST_SPLIT * DECODE_ROWS *
                                (uint64_t)DECODE_RECORD(padded_of(a)) * sizeof(float);
    return NULL;
}
