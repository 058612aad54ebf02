/* SPDX-License-Identifier: MIT */
/* Plans attention_decode.cu: the number of splits of the keys, and the resources of the row. */
#include "../launch.h"

#include "common/lowering.h"

#include "heads.h"

#include "attention_decode.h"

enum { SIZES = 3 };

/* The families for heads of up to 64, 128 and 256: attention alone, and a decoding step. */
static const enum family decode[SIZES] = { FAMILY_decode_64, FAMILY_decode_128,
                                           FAMILY_decode_256 };
static const enum family steps[SIZES] = { FAMILY_step_64, FAMILY_step_128,
                                          FAMILY_step_256 };

/* The size of heads for which both have kernels; SIZES: none. */
static int size_of(const struct attention_args *a)
{
    const int larger = a->head_dim > a->value_dim ? a->head_dim : a->value_dim;
    return larger <= 64 ? 0 : larger <= 128 ? 1 : larger <= 256 ? 2 : SIZES;
}

static int padded_of(const struct attention_args *a)
{
    return 64 << size_of(a);
}

/* Whether keys can be copied 16 bytes at a time. Block types may begin at any byte. */
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

/* The most groups if the keys are split: each has a counter. */
enum { MOST_SPLIT = WORKSPACE_COUNTERS / 4 };

/* A few more splits than a set has would be added up twice. */
static int64_t whole_sets(int64_t splits)
{
    return splits > DECODE_SET && splits < DECODE_SET * 5 / 4 ? DECODE_SET : splits;
}

/* As many splits as fill the groups that the device runs at a time: exactly, or so that few of them
 * idle at the end. */
static int64_t splits_of(const struct attention_args *a, int64_t groups, int64_t at_a_time)
{
    const int64_t useful = (a->keys_max + DECODE_FEW - 1) / DECODE_FEW;
    int64_t best = 1, most = MOST_SPLIT / groups;
    double busiest = 0;
    most = most < useful ? most : useful;
    if (at_a_time / groups >= 4)
        return whole_sets(at_a_time / groups < most ? at_a_time / groups
                          : most > 0                ? most
                                                    : 1);
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

/* Bytes of shared memory of a group, and its warps. */
static unsigned shared_of(const struct device *device, const struct attention_args *a)
{
    return (unsigned)DECODE_SHARED(a->k_type, padded_of(a), device->capability);
}

static int warps_of(const struct attention_args *a)
{
    return DECODE_WARPS(a->k_type, padded_of(a));
}

/* Groups that the device runs at a time. */
static int64_t at_a_time(const struct device *device, const struct attention_args *a)
{
    enum { RESERVED = 1024 };
    const int64_t fit = device->shared_most / (int64_t)(shared_of(device, a) + RESERVED);
    const int64_t most = DECODE_GROUPS(a->k_type, padded_of(a));
    return device->units * (fit < 1 ? 1 : fit < most ? fit : most);
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
        .counters = at->workspace - WORKSPACE_COUNTERS,
        .heads_each = (int)(a->heads / a->kv_heads),
        .splits = (int)splits_of(a, groups, at_a_time(at->device, a)),
        .runs = (int)runs_of(a),
    };
    if (a->window >= a->keys_max)
        args.a.window = 0;
    return args;
}

static struct launch launch_of(const struct device *device, enum tuned kernel,
                               const struct decode_args *args, int64_t batches)
{
    return (struct launch){
        .kernel = kernel,
        .groups = { (unsigned)args->splits, (unsigned)(args->a.kv_heads * args->runs),
                    (unsigned)batches },
        .threads = (unsigned)warps_of(&args->a) * 32,
        .shared = shared_of(device, &args->a),
        .early = true,
    };
}

/* Whether no node of the graph writes keys, values or lengths. */
static bool has_constant_keys(const struct launcher *at, const struct hw_attention *op)
{
    const struct range read[] = { launch_range(&op->k), launch_range(&op->v),
                                  launch_range(&op->lengths) };
    if (!at->nodes)
        return false;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (graph_writes(at, at->nodes, 0, read[i]))
            return false;
    return true;
}

static int32_t launch_decode(const struct launcher *at, const struct plan *plan,
                             const void *op_args)
{
    const struct attention_args *a = &plan->lowered.args.attention;
    const struct hw_attention *op = op_args;
    struct decode_args args = args_of(at, plan, op);
    args.constant = has_constant_keys(at, op);
    const enum tuned kernel = tuned_of(decode[size_of(a)], a->k_type);
    const struct launch launch = launch_of(at->device, kernel, &args, extent_of(&op->q, 3));
    return launch_kernel(at, &launch, &args);
}

/* Whether the numbers of keys, rows and groups fit in an int and in a grid. */
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
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const struct attention_args *a = &plan->lowered.args.attention;
    if (a->bias_type)
        return "a bias";
    if (a->k_type != a->v_type)
        return "k and v have different types";
    if (size_of(a) == SIZES || !tuned_of(decode[size_of(a)], a->k_type))
        return "no kernel for heads of this type and size";
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

/* ---- a decoding step: rope of q and k, storing k and v, and attention ---- */

/* Finds the jobs: one rotates q, one rotates k and stores it, one stores v. */
static bool find_jobs(struct decode_step_args *step, const struct heads_args *jobs)
{
    for (int i = 0; i < jobs->jobs; i++) {
        const struct heads_job *job = &jobs->job[i];
        struct heads_job *to = !job->y ? &step->v : job->table ? &step->k : &step->q;
        if (to->x || job->rope.tokens != 1)
            return false;
        *to = *job;
    }
    return step->q.x && step->k.x && step->v.x;
}

/* Whether the attention's queries are the job's result. */
static bool is_q(const struct decode_args *s, const struct heads_job *job)
{
    const struct attention_args *a = &s->a;
    return job->y == s->q && job->type == a->q_type && job->rope.heads == a->heads &&
           job->rope.head_dim == a->head_dim &&
           (a->heads == 1 || job->rope.y.stride[2] == a->q.stride[2]);
}

/* Keys or values of the attention. */
struct cached {
    uint64_t at;
    const struct place *place;
    int type, dim;
};

/* Whether keys or values are rows of the table that the job stores to. */
static bool is_cache(const struct cached *c, const struct heads_job *job, int64_t heads)
{
    const int64_t bytes = c->dim / hw_dtype_block(c->type) * hw_dtype_bytes(c->type);
    return job->table == c->at && job->store.to_type == c->type &&
           job->store.cols == heads * c->dim &&
           job->store.to.stride[2] == c->place->stride[1] &&
           (heads == 1 || c->place->stride[2] == bytes);
}

/* Whether k is rotated as q is. */
static bool has_same_angles(const struct heads_job *k, const struct heads_job *q)
{
    const struct rope_args *a = &k->rope, *b = &q->rope;
    return k->positions == q->positions && k->factors == q->factors &&
           a->start == b->start && a->ramp_first == b->ramp_first &&
           a->ramp_length == b->ramp_length && a->frequency == b->frequency &&
           a->ratio == b->ratio && a->reduction == b->reduction && a->step == b->step &&
           a->interleaved == b->interleaved && a->has_positions == b->has_positions &&
           a->has_factors == b->has_factors && a->ramped == b->ramped &&
           a->magnitude == b->magnitude;
}

/* Whether one row number serves both tables, and all keys are inside them: other ops of the launch
 * may write to the memory behind. */
static bool has_same_rows(const struct decode_step_args *s)
{
    return s->k.rows == s->v.rows && s->k.store.rows_type == s->v.store.rows_type &&
           s->k.store.table_rows == s->v.store.table_rows &&
           s->decode.a.keys_max <= s->k.store.table_rows;
}

static bool fits_step(const struct decode_step_args *s)
{
    const struct attention_args *a = &s->decode.a;
    const struct cached k = { s->decode.k, &a->k, a->k_type, a->head_dim },
                        v = { s->decode.v, &a->v, a->v_type, a->value_dim };
    return a->queries == 1 && s->decode.runs == 1 && a->head_dim == padded_of(a) &&
           a->value_dim == padded_of(a) && is_q(&s->decode, &s->q) &&
           is_cache(&k, &s->k, a->kv_heads) && is_cache(&v, &s->v, a->kv_heads) &&
           has_same_angles(&s->k, &s->q) && s->k.rope.heads == a->kv_heads &&
           s->k.rope.head_dim == a->head_dim && has_same_rows(s);
}

/* Whether nothing else in the graph writes the launch's inputs, except its row. */
static bool is_constant(const struct launcher *at, const struct decode_step_args *s,
                        const struct hw_attention *op, const struct hw_node *nodes,
                        uint32_t count)
{
    const struct range read[] = {
        launch_range(&op->lengths),
        launch_range(&op->k),
        launch_range(&op->v),
        { s->q.positions, s->q.positions + sizeof(int32_t) },
        { s->q.factors, s->q.factors + (uint64_t)s->decode.a.head_dim / 2 * sizeof(float) },
        { s->k.rows, s->k.rows + (uint64_t)hw_dtype_bytes(s->k.store.rows_type) },
    };
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (graph_writes(at, nodes, count, read[i]))
            return false;
    return true;
}

_Static_assert((int)DECODE_ANGLES == WORKSPACE_ANGLES, "the workspace begins with angles");

/* The first launch stores its angles for all launches that have the same ones. */
static void share_angles(struct decode_step_args *step, const struct launcher *at)
{
    struct heads_job *first = at->rotated;
    const bool is_first = !first->x;
    if (is_first)
        *first = step->q;
    if (!has_same_angles(first, &step->q) || first->rope.head_dim != step->q.rope.head_dim)
        return;
    step->angles = at->workspace - WORKSPACE_HEAD;
    step->angles_there = !is_first;
}

int32_t decode_launch_step(const struct launcher *at, const struct queue *queue,
                           const struct heads_args *jobs, const struct hw_node *nodes,
                           uint32_t count, uint32_t *taken)
{
    const struct hw_attention *op = nodes[count].args;
    struct decode_step_args step = { .angles = 0 };
    struct plan plan;
    if (kernel_plan(&queue->choice, HW_OP_ATTENTION, op, &plan) ||
        plan.launch != launch_decode || plan.lowered.groups == 0 ||
        extent_of(&op->q, 3) != 1 || !find_jobs(&step, jobs))
        return HW_OK;
    step.decode = args_of(at, &plan, op);
    if (!fits_step(&step))
        return HW_OK;
    step.v.rope.x.stride[2] = step.decode.a.value_dim * hw_dtype_bytes(step.v.type);
    step.decode.constant = is_constant(at, &step, op, nodes, count + 1);
    if (step.decode.constant && plan.workspace)
        share_angles(&step, at);
    *taken = count + 1;
    const enum tuned kernel = tuned_of(steps[size_of(&step.decode.a)],
                                       step.decode.a.k_type);
    const struct launch launch = launch_of(at->device, kernel, &step.decode, 1);
    return launch_kernel(at, &launch, &step);
}
