/* SPDX-License-Identifier: MIT */
/* Plans heads.cu: rope, and set_rows into floats and q8_0. In a graph, neighbouring ops become one
 * launch. */
#include "../launch.h"

#include "common/lowering.h"

#include "heads.h"

/* ---- what fits ---- */

/* Two neighbours are loaded and stored at once. */
static bool is_aligned(uint64_t address, const struct place *p, int32_t type)
{
    const uint64_t all = address | (uint64_t)p->stride[1] | (uint64_t)p->stride[2];
    return type == HW_Q8_0 || all % (2 * (uint64_t)hw_dtype_bytes(type)) == 0;
}

/* Warps of a launch are numbered by an int. */
enum { MOST_WARPS = 1 << 30 };

/* y = rope(x). */
static const char *job_of_rope(struct heads_job *job, const struct lowered *l)
{
    const struct rope_args *a = &l->args.rope;
    const struct hw_tensor *y = l->operand[0], *x = l->operand[1];
    *job = (struct heads_job){
        .rope = *a,
        .x = launch_range(x).begin,
        .y = launch_range(y).begin,
        .positions = launch_range(l->operand[2]).begin,
        .factors = launch_range(l->operand[3]).begin,
        .type = x->dtype,
    };
    if (extent_of(x, 3) != 1)
        return "more than one batch";
    if (a->dims != a->head_dim || a->head_dim % 64)
        return "pairs must fill a head, and its size must be a multiple of 64";
    if (a->tokens > MOST_WARPS / a->heads)
        return "too many tokens";
    if (!is_aligned(job->x, &a->x, x->dtype) || !is_aligned(job->y, &a->y, y->dtype))
        return "x or y is not aligned";
    return NULL;
}

/* table[rows[token]] = x; a row of the table is cut into heads. */
static const char *job_of_set_rows(struct heads_job *job, const struct lowered *l)
{
    const struct rows_args *a = &l->args.set_rows;
    const struct hw_tensor *table = l->operand[0], *x = l->operand[1];
    const int64_t dim = a->cols % 128 ? 64 : 128;
    *job = (struct heads_job){
        .rope = { .x = { .stride = { 0, a->from.stride[2],
                                     dim * hw_dtype_bytes(x->dtype) } },
                  .tokens = a->count,
                  .heads = a->cols / dim,
                  .head_dim = dim },
        .store = *a,
        .x = launch_range(x).begin,
        .table = launch_range(table).begin,
        .rows = launch_range(l->operand[2]).begin,
        .type = x->dtype,
    };
    if (a->to_type != HW_Q8_0 && hw_dtype_block(a->to_type) > 1)
        return "the table has blocks of another type";
    if (extent_of(x, 3) != 1 || extent_of(x, 2) != 1)
        return "more than one batch";
    if (a->cols == 0 || a->cols % 64)
        return "the extent of a row must be a multiple of 64";
    if (a->count > MOST_WARPS / job->rope.heads)
        return "too many rows";
    if (!is_aligned(job->x, &job->rope.x, x->dtype) ||
        !is_aligned(job->table, &a->to, a->to_type))
        return "x or the table is not aligned";
    return NULL;
}

/* ---- launches ---- */

/* Numbers the warps: one per head of a token, or per several heads if there are many. */
static int64_t set_warps(struct heads_args *args)
{
    enum { FEW = 4096, EACH = 8 };
    int64_t heads = 0, warps = 0;
    for (int i = 0; i < args->jobs; i++)
        heads += args->job[i].rope.tokens * args->job[i].rope.heads;
    args->each = heads <= FEW ? 1 : EACH;
    for (int i = 0; i < args->jobs; i++) {
        struct heads_job *job = &args->job[i];
        job->first = (int)warps;
        job->runs = (int)pieces(job->rope.heads, args->each);
        warps += job->rope.tokens * job->runs;
    }
    return warps;
}

static int32_t launch_jobs(const struct launcher *at, struct heads_args *args)
{
    const int64_t warps = set_warps(args);
    return launch_kernel(at,
                         &(struct launch){
                             .kernel = TUNED_heads_move,
                             .groups = { (unsigned)pieces(warps, HEADS_WARPS), 1, 1 },
                             .threads = HEADS_WARPS * 32,
                             .early = true,
                         },
                         args);
}

static const char *job_of(struct heads_job *job, const struct lowered *l)
{
    return l->kernel == PORTABLE_rope ? job_of_rope(job, l) : job_of_set_rows(job, l);
}

static int32_t launch_heads(const struct launcher *at, const struct plan *plan,
                            const void *op)
{
    struct heads_args args = { .jobs = 1 };
    (void)op;
    (void)job_of(&args.job[0], &plan->lowered); /* it fits */
    return launch_jobs(at, &args);
}

kernel_plan_fn plan_heads;
const char *plan_heads(struct plan *plan, const struct kernel_row *row, const void *args)
{
    struct heads_job job;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    plan->launch = launch_heads;
    if (plan->lowered.groups == 0)
        return NULL;
    return job_of(&job, &plan->lowered);
}

/* ---- neighbours in a graph as one launch ---- */

/* The ranges that an op reads and writes. */
struct touched {
    struct range reads[3], writes;
};

/* The ops that a launch computes. */
struct fused {
    struct heads_args args;
    struct touched touched[2 * HEADS_JOBS];
    int ops;
};

/* Operand 0 is the output. */
static struct touched touched_by(const struct lowered *l)
{
    struct touched t = { .writes = launch_range(l->operand[0]) };
    for (uint32_t i = 1; i < l->pointers; i++)
        t.reads[i - 1] = launch_range(l->operand[i]);
    return t;
}

static bool depends(const struct touched *op, const struct touched *writer)
{
    bool apart = are_apart(op->writes, writer->writes);
    for (int i = 0; i < 3; i++)
        apart = apart && are_apart(op->reads[i], writer->writes);
    return !apart;
}

/* Whether a job stores the result of a job that rotates. */
static bool stores_result_of(const struct heads_job *job, const struct heads_job *rotated)
{
    const struct rope_args *a = &rotated->rope;
    const int64_t head = a->head_dim * hw_dtype_bytes(rotated->type);
    return job->table && rotated->y && !rotated->table && job->x == rotated->y &&
           job->type == rotated->type && job->rope.tokens == a->tokens &&
           job->store.cols == a->heads * a->head_dim &&
           (a->heads == 1 || a->y.stride[2] == head) &&
           (a->tokens == 1 || a->y.stride[1] == job->rope.x.stride[1]);
}

/* Adds a job; if it stores the result of another job, adds it to that job. */
static bool add_job(struct fused *f, const struct heads_job *job, struct touched *touched)
{
    for (int i = 0; i < f->args.jobs; i++) {
        struct heads_job *rotated = &f->args.job[i];
        if (stores_result_of(job, rotated)) {
            rotated->store = job->store;
            rotated->table = job->table;
            rotated->rows = job->rows;
            touched->reads[0] = (struct range){ 0 };
            return true;
        }
    }
    if (f->args.jobs == HEADS_JOBS)
        return false;
    f->args.job[f->args.jobs++] = *job;
    return true;
}

/* Adds a node that does not depend on the nodes before, or depends on one only as the store of its
 * result. */
static bool add_node(struct fused *f, const struct queue *queue, const struct hw_node *node)
{
    struct plan plan;
    struct heads_job job;
    struct fused more = *f;
    if ((node->op != HW_OP_ROPE && node->op != HW_OP_SET_ROWS) ||
        kernel_plan(&queue->choice, node->op, node->args, &plan) ||
        plan.launch != launch_heads || plan.lowered.groups == 0)
        return false;
    struct touched touched = touched_by(&plan.lowered);
    (void)job_of(&job, &plan.lowered); /* it fits */
    if (!add_job(&more, &job, &touched))
        return false;
    for (int i = 0; i < f->ops; i++)
        if (depends(&touched, &f->touched[i]) || depends(&f->touched[i], &touched))
            return false;
    more.touched[more.ops++] = touched;
    *f = more;
    return true;
}

/* Whether the operands of an attention, except q, k and v, do not overlap anything that jobs
 * use. */
static bool is_disjoint(const struct fused *f, const struct hw_node *node)
{
    const struct hw_attention *op = node->args;
    if (node->op != HW_OP_ATTENTION)
        return false;
    const struct touched touched = {
        .reads = { launch_range(&op->lengths), launch_range(&op->slopes),
                   launch_range(&op->sinks) },
        .writes = launch_range(&op->y),
    };
    for (int i = 0; i < f->ops; i++)
        if (depends(&touched, &f->touched[i]) || depends(&f->touched[i], &touched))
            return false;
    return true;
}

int32_t heads_launch_nodes(const struct launcher *at, const struct queue *queue,
                           const struct hw_node *nodes, uint32_t count, uint32_t *taken)
{
    struct fused f = { .ops = 0 };
    uint32_t n = 0, more = 0;
    while (n < count && add_node(&f, queue, &nodes[n]))
        n++;
    if (n < count && is_disjoint(&f, &nodes[n])) {
        const int32_t status = decode_launch_step(at, queue, &f.args, nodes, n, &more);
        *taken = more;
        if (status || more)
            return status;
    }
    *taken = n < 2 ? 0 : n;
    return n < 2 ? HW_OK : launch_jobs(at, &f.args);
}
