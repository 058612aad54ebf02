/* SPDX-License-Identifier: MIT */
/* Plans matmul_gemv.cu: up to 8 rows of a, and b stored [n,k]. Several matmuls of the same row, and
 * a swiglu of two, can be one launch. */
#include "../cuda.h"

#include "matmul_gemv.h"

/* ---- the kernel ---- */

static enum tuned exact_kernel(int32_t type)
{
    static const enum tuned kernels[] = {
        [HW_F32] = TUNED_gemv_f32,   [HW_F16] = TUNED_gemv_f16,
        [HW_BF16] = TUNED_gemv_bf16, [HW_Q8_0] = TUNED_gemv_q8_0,
        [HW_Q4_0] = TUNED_gemv_q4_0, [HW_Q4_1] = TUNED_gemv_q4_1,
        [HW_Q5_0] = TUNED_gemv_q5_0, [HW_Q5_1] = TUNED_gemv_q5_1,
        [HW_Q4_K] = TUNED_gemv_q4_K, [HW_Q5_K] = TUNED_gemv_q5_K,
        [HW_Q6_K] = TUNED_gemv_q6_K,
    };
    return kernels[type];
}

/* For one row of a, and for a few. */
static enum tuned rounding_kernel(int32_t type, bool few)
{
    static const enum tuned kernels[][2] = {
        [HW_Q8_0] = { TUNED_gemv_int8_q8_0, TUNED_gemv_int8_few_q8_0 },
        [HW_Q4_0] = { TUNED_gemv_int8_q4_0, TUNED_gemv_int8_few_q4_0 },
        [HW_Q4_1] = { TUNED_gemv_int8_q4_1, TUNED_gemv_int8_few_q4_1 },
        [HW_Q5_0] = { TUNED_gemv_int8_q5_0, TUNED_gemv_int8_few_q5_0 },
        [HW_Q5_1] = { TUNED_gemv_int8_q5_1, TUNED_gemv_int8_few_q5_1 },
        [HW_Q4_K] = { TUNED_gemv_int8_q4_K, TUNED_gemv_int8_few_q4_K },
        [HW_Q5_K] = { TUNED_gemv_int8_q5_K, TUNED_gemv_int8_few_q5_K },
        [HW_Q6_K] = { TUNED_gemv_int8_q6_K, TUNED_gemv_int8_few_q6_K },
    };
    return kernels[type][few];
}

/* What is launched. */
struct kind {
    int type; /* of b */
    int64_t k;
    int tokens; /* rows of a in a launch; more take several */
    bool rounds;
};

/* What a group has. */
struct shape {
    int warps, stages; /* of the ring of each; 0: it does not fit */
    unsigned shared;
};

/* Bytes that groups of one kernel need. */
struct need {
    int64_t a, stage; /* a in shared memory; a stage of a warp's ring */
};

static struct need need_of(const struct kind *kind)
{
    const int type = kind->type;
    const int64_t steps = (kind->k + GEMV_STEP_NUMBERS(type) - 1) / GEMV_STEP_NUMBERS(type);
    const int64_t a = steps * GEMV_A_BYTES(type, kind->rounds ? ROUNDED : EXACT);
    return (struct need){ a * kind->tokens, GEMV_STAGE_BYTES(type) };
}

/* What dynamic memory each of `groups` groups on a multiprocessor may have. */
static int64_t room_for(const struct device *device, int groups)
{
    enum { DECLARED = 2048, RESERVED = 1024 };
    return (device->shared_most + RESERVED) / groups - RESERVED - DECLARED;
}

/* As many stages as have room; none if that is less than two. */
static struct shape shape_with(const struct need *need, int64_t warps, int64_t room)
{
    int64_t stages = (room - need->a) / (warps * need->stage);
    stages = stages < GEMV_STAGES ? stages : GEMV_STAGES;
    if (room < need->a || stages < 2)
        return (struct shape){ 0 };
    return (struct shape){ (int)warps, (int)stages,
                           (unsigned)(warps * stages * need->stage + need->a) };
}

/* The most warps that have room. */
static struct shape shape_in(const struct need *need, int64_t room)
{
    struct shape shape = { 0 };
    for (int warps = GEMV_WARPS; warps >= GEMV_WARPS / 2 && !shape.stages; warps -= 4)
        shape = shape_with(need, warps, room);
    return shape;
}

/* Two groups must never fit on one multiprocessor: those of a launch that begins early would
 * gather where the launch before it has left room, and that multiprocessor would finish last. */
static struct shape shape_of(const struct device *device, const struct kind *kind)
{
    const struct need need = need_of(kind);
    const int64_t least = room_for(device, 2) + 16;
    struct shape shape = shape_in(&need, room_for(device, 1));
    if (shape.stages && shape.shared < least)
        shape.shared = (unsigned)least;
    return shape;
}

/* ---- what fits ---- */

/* Rows of c, or 0 if it has several batches. */
static int64_t rows_of(const struct hw_tensor *c)
{
    for (int i = 0; i < c->rank - 2; i++)
        if (c->extent[i] != 1)
            return 0;
    return c->extent[c->rank - 2];
}

static struct kind kind_of(const struct hw_matmul *op, const struct plan *plan)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    return (struct kind){ op->b.dtype, m->k, plan->rounds ? (int)m->m : 1, plan->rounds };
}

/* Where numbers are read from shared memory in as many bytes, as they lie in device memory. */
static uint64_t alignment_of(int32_t type)
{
    switch (type) {
    case HW_Q8_0:
    case HW_Q6_K:
        return 2;
    case HW_Q4_0:
    case HW_Q4_1:
    case HW_Q5_0:
    case HW_Q5_1:
        return 4;
    default:
        return 16;
    }
}

/* Types of which a lane has two neighbouring blocks at a time. */
static bool is_paired(int32_t type)
{
    return type == STORAGE_Q4_0 || type == STORAGE_Q5_0;
}

static bool is_aligned(const struct hw_matmul *op, const struct matmul_args *m)
{
    const uint64_t align = alignment_of(op->b.dtype);
    const uint64_t first = launch_base(&op->b) + (uint64_t)m->b.offset;
    const uint64_t a = launch_base(&op->a) + (uint64_t)m->a.offset;
    const uint64_t align_a = op->a.dtype == HW_F32 ? 16 : 8;
    return first % align == 0 && (uint64_t)m->b.stride[2] % align == 0 &&
           a % align_a == 0 && (m->m == 1 || (uint64_t)m->a.stride[2] % align_a == 0);
}

/* ---- launches ---- */

/* All but the parts. */
static struct gemv_args args_of(const struct plan *plan, const struct hw_matmul *op)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    return (struct gemv_args){
        .a = launch_base(&op->a) + (uint64_t)m->a.offset,
        .k = (int)m->k,
        .a_stride = m->a.stride[2],
        .c_stride = m->c.stride[2],
        .a_type = m->a_type,
        .c_type = m->c_type,
        .constant = 1,
    };
}

static void add_part(struct gemv_args *args, const struct plan *plan,
                     const struct hw_matmul *op)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    args->part[args->parts++] = (struct gemv_part){
        .b = launch_base(&op->b) + (uint64_t)m->b.offset,
        .bias = m->bias_type ? launch_base(&op->bias) + (uint64_t)m->bias_offset : 0,
        .c = launch_base(&op->c) + (uint64_t)m->c.offset,
        .stride = m->b.stride[2],
        .rows = (int)m->n,
        .bias_type = m->bias_type,
    };
    args->rows += (int)m->n;
    if (!(op->b.buffer->flags & HW_BUFFER_READ_ONLY))
        args->constant = 0;
}

static int32_t launch_parts(const struct launcher *at, const struct kind *kind,
                            struct gemv_args *args)
{
    const struct shape shape = shape_of(at->device, kind);
    const int pieces = args->rows / (args->gated ? 2 : 1), units = at->device->units;
    args->tokens = kind->tokens;
    args->stages = shape.stages;
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = kind->rounds ? rounding_kernel(kind->type, kind->tokens > 1)
                                   : exact_kernel(kind->type),
            .groups = { (unsigned)(pieces < units ? pieces : units), 1, 1 },
            .threads = (unsigned)shape.warps * 32,
            .shared = shape.shared,
            .early = true,
        },
        args);
}

static int32_t launch_gemv(const struct launcher *at, const struct plan *plan,
                           const void *op)
{
    const int64_t rows = plan->lowered.args.matmul.m;
    const struct kind kind = kind_of(op, plan);
    struct gemv_args args = args_of(plan, op);
    int32_t status = HW_OK;
    add_part(&args, plan, op);
    for (int64_t row = 0; row < rows && !status; row += kind.tokens) {
        status = launch_parts(at, &kind, &args);
        args.a += (uint64_t)(kind.tokens * args.a_stride);
        args.part[0].c += (uint64_t)(kind.tokens * args.c_stride);
    }
    return status;
}

kernel_plan_fn plan_matmul_gemv;
const char *plan_matmul_gemv(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    const struct hw_matmul *op = args;
    const char *why = lower(row->op, args, &plan->lowered);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    plan->launch = launch_gemv;
    plan->workspace = 0;
    plan->rounds = row->needs & BYTES;
    if (!op->b.buffer)
        return "b is not in device memory";
    if (rows_of(&op->c) < 1 || rows_of(&op->c) > GEMV_TOKENS)
        return "c must have 1 to 8 rows and one batch";
    if (plan->rounds && GEMV_IS_FLOAT(m->b_type))
        return "b has no blocks";
    if (m->k == 0 || m->k > SHARED_MOST || m->n > INT32_MAX / 4 ||
        (GEMV_IS_FLOAT(m->b_type) && m->k % 8))
        return "n or k is too large, or k of floats must be a multiple of 8";
    if (is_paired(m->b_type) && m->k / 32 % 2)
        return "rows of b have an odd number of blocks";
    if (!is_aligned(op, m))
        return "a or b is not aligned";
    const struct kind kind = kind_of(op, plan);
    if (!shape_of(op->b.buffer->device, &kind).stages)
        return "a does not fit into shared memory";
    return NULL;
}

/* ---- neighbours in a graph as one launch ---- */

static struct range floats_at(uint64_t begin, int64_t count, int32_t type)
{
    const uint64_t bytes = type ? (uint64_t)(count * hw_dtype_bytes(type)) : 0;
    return (struct range){ begin, begin + bytes };
}

static struct range weights_of(const struct gemv_part *part, int k)
{
    /* with one row there may be no stride */
    return (struct range){ part->b, part->b + (uint64_t)(part->rows * part->stride) +
                                        (uint64_t)k * 4 };
}

/* Whether what `writer` writes is nothing that `other` reads or writes. */
static bool does_not_touch(const struct gemv_args *args, const struct gemv_part *writer,
                           const struct gemv_part *other)
{
    const struct range c = floats_at(writer->c, writer->rows, args->c_type);
    return are_apart(c, floats_at(args->a, args->k, args->a_type)) &&
           are_apart(c, weights_of(other, args->k)) &&
           are_apart(c, floats_at(other->bias, other->rows, other->bias_type)) &&
           are_apart(c, floats_at(other->c, other->rows, args->c_type));
}

static bool is_gemv(const struct queue *queue, const struct hw_node *node,
                    struct plan *plan)
{
    return node->op == HW_OP_MATMUL &&
           !kernel_plan(&queue->choice, node->op, node->args, plan) &&
           plan->launch == launch_gemv && plan->lowered.args.matmul.m == 1 &&
           plan->lowered.groups > 0;
}

/* Adds a matmul of the same a, unless one depends on another. */
static bool add_neighbour(struct gemv_args *args, const struct queue *queue,
                          const struct plan *plan_of_first, const struct hw_matmul *first,
                          const struct hw_node *node)
{
    struct plan plan;
    struct gemv_args more = *args;
    if (args->parts == GEMV_PARTS || !is_gemv(queue, node, &plan) ||
        plan.rounds != plan_of_first->rounds)
        return false;
    const struct hw_matmul *op = node->args;
    const struct gemv_args own = args_of(&plan, op);
    if (own.a != args->a || own.k != args->k || own.a_type != args->a_type ||
        own.c_type != args->c_type || op->b.dtype != first->b.dtype)
        return false;
    add_part(&more, &plan, op);
    const struct gemv_part *last = &more.part[args->parts];
    for (int i = 0; i < args->parts; i++)
        if (!does_not_touch(&more, last, &more.part[i]) ||
            !does_not_touch(&more, &more.part[i], last))
            return false;
    *args = more;
    return true;
}

static int64_t elements_of(const struct hw_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->extent[i];
    return count;
}

static uint64_t address_of(const struct lowered *l, int operand, const struct place *place)
{
    return launch_base(l->operand[operand]) + (uint64_t)place->offset;
}

/* Adds silu(first) * second, if that is what a node computes. */
static bool add_swiglu(struct gemv_args *args, const struct queue *queue,
                       const struct hw_node *node)
{
    struct plan plan;
    const struct gemv_part *gate = &args->part[0], *up = &args->part[1];
    if (node->op != HW_OP_SWIGLU || queue->choice.forced[HW_OP_SWIGLU] ||
        args->parts != 2 || gate->rows != up->rows || gate->bias_type || up->bias_type ||
        args->c_type != HW_F32 ||
        kernel_plan(&queue->choice, HW_OP_SWIGLU, node->args, &plan))
        return false;
    const struct lowered *l = &plan.lowered;
    const struct swiglu_args *s = &l->args.swiglu;
    const uint64_t y = address_of(l, 0, &s->y);
    struct gemv_part writer = *gate;
    writer.c = y;
    if (l->form != FORM_f32_f32 || s->cols != gate->rows ||
        elements_of(l->operand[0]) != gate->rows)
        return false;
    if (address_of(l, 1, &s->gate) != gate->c || address_of(l, 2, &s->up) != up->c ||
        !does_not_touch(args, &writer, up) ||
        (y != gate->c && !does_not_touch(args, &writer, gate)))
        return false;
    args->y = y;
    args->gated = 1;
    return true;
}

int32_t gemv_launch_nodes(const struct launcher *at, const struct queue *queue,
                          const struct hw_node *nodes, uint32_t count, uint32_t *taken)
{
    struct plan plan;
    *taken = 0;
    if (count < 2 || !is_gemv(queue, nodes, &plan))
        return HW_OK;
    const struct hw_matmul *first = nodes->args;
    struct gemv_args args = args_of(&plan, first);
    uint32_t n = 1;
    add_part(&args, &plan, first);
    while (n < count && add_neighbour(&args, queue, &plan, first, &nodes[n]))
        n++;
    if (n == 1)
        return HW_OK;
    if (n < count && add_swiglu(&args, queue, &nodes[n]))
        n++;
    *taken = n;
    const struct kind kind = kind_of(first, &plan);
    return launch_parts(at, &kind, &args);
}
