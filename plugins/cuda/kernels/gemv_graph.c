/* SPDX-License-Identifier: MIT */
/* The nodes of a graph that become one launch of matmul_gemv.cu: several matmuls of the same row,
 * and a swiglu of two. An add_rmsnorm between two such launches becomes part of both: the first
 * adds to the residual, the second normalises the row. */
#include "gemv_plan.h"

/* ---- what nodes read and write ---- */

static struct range floats_at(uint64_t begin, int64_t count, int32_t type)
{
    const uint64_t bytes = type ? (uint64_t)(count * hw_dtype_bytes(type)) : 0;
    return (struct range){ begin, begin + bytes };
}

static struct range weights_of(const struct gemv_part *part, int k)
{
    /* with one row, the stride may be missing */
    return (struct range){ part->b, part->b + (uint64_t)(part->rows * part->stride) +
                                        (uint64_t)k * 4 };
}

/* Whether a written range does not overlap anything that a part reads or writes. */
static bool is_disjoint(struct range written, const struct gemv_args *args,
                        const struct gemv_part *part)
{
    return are_apart(written, weights_of(part, args->k)) &&
           are_apart(written, floats_at(part->bias, part->rows, part->bias_type)) &&
           are_apart(written, floats_at(part->c, part->rows, args->c_type));
}

/* Whether the results of `writer` do not overlap anything that `other` reads or writes. */
static bool does_not_touch(const struct gemv_args *args, const struct gemv_part *writer,
                           const struct gemv_part *other)
{
    const struct range c = floats_at(writer->c, writer->rows, args->c_type);
    return are_apart(c, floats_at(args->a, args->k, args->a_type)) &&
           is_disjoint(c, args, other);
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

/* ---- products of one row ---- */

/* Nodes that are one launch. */
struct group {
    struct gemv_args args;
    struct gemv_kind kind;
    uint32_t nodes; /* 0: they are none */
};

static bool is_gemv(const struct queue *queue, const struct hw_node *node,
                    struct plan *plan)
{
    return node->op == HW_OP_MATMUL &&
           !kernel_plan(&queue->choice, node->op, node->args, plan) &&
           plan->launch == gemv_launch && plan->lowered.args.matmul.m == 1 &&
           plan->lowered.groups > 0;
}

/* Adds a matmul of the same a, unless one depends on another. A matmul whose b has another type is
 * the last one. */
static bool add_neighbour(struct group *group, const struct queue *queue,
                          const struct hw_node *node)
{
    struct plan plan;
    const struct gemv_args *args = &group->args;
    struct gemv_args more = *args;
    if (args->parts == GEMV_PARTS || group->kind.last || !is_gemv(queue, node, &plan) ||
        plan.rounds != group->kind.rounds)
        return false;
    const struct hw_matmul *op = node->args;
    const struct gemv_args own = gemv_args_of(&plan, op);
    if (own.a != args->a || own.k != args->k || own.a_type != args->a_type ||
        own.c_type != args->c_type)
        return false;
    const bool alike = op->b.dtype == group->kind.type;
    if (!alike && !gemv_may_end_with(queue->device, &group->kind, op->b.dtype))
        return false;
    gemv_add_part(&more, &plan, op);
    const struct gemv_part *last = &more.part[args->parts];
    for (int i = 0; i < args->parts; i++)
        if (!does_not_touch(&more, last, &more.part[i]) ||
            !does_not_touch(&more, &more.part[i], last))
            return false;
    group->args = more;
    group->kind.last = alike ? HW_NONE : op->b.dtype;
    return true;
}

/* Adds silu(first) * second, if a node computes that. */
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

/* The longest sequence of first nodes that can be one launch. */
static struct group group_of(const struct queue *queue, const struct hw_node *nodes,
                             uint32_t count)
{
    struct plan plan;
    struct group group = { .nodes = 0 };
    if (count == 0 || !is_gemv(queue, nodes, &plan))
        return group;
    group.args = gemv_args_of(&plan, nodes->args);
    group.kind = gemv_kind_of(nodes->args, &plan);
    gemv_add_part(&group.args, &plan, nodes->args);
    group.nodes = 1;
    while (group.nodes < count && add_neighbour(&group, queue, &nodes[group.nodes]))
        group.nodes++;
    if (group.nodes < count && !group.kind.last &&
        add_swiglu(&group.args, queue, &nodes[group.nodes]))
        group.nodes++;
    return group;
}

/* ---- a norm between two launches ---- */

/* An add_rmsnorm of a row: residual += x, y = rmsnorm(residual). */
struct norm {
    uint64_t residual, x, y, weight;
    int cols;
    float eps;
};

/* Whether the launches on both sides of a node can compute it. */
static bool find_norm(struct norm *norm, const struct queue *queue,
                      const struct hw_node *node)
{
    enum { MOST = GEMV_STAGERS * 32 * GEMV_NORM_QUADS * 4 };
    struct plan plan;
    if (node->op != HW_OP_ADD_RMSNORM || queue->choice.forced[HW_OP_ADD_RMSNORM] ||
        kernel_plan(&queue->choice, node->op, node->args, &plan))
        return false;
    const struct hw_add_rmsnorm *op = node->args;
    const struct lowered *l = &plan.lowered;
    const struct add_rmsnorm_args *a = &l->args.add_rmsnorm;
    /* the tuned row, whose sums are repeated, and operands begin at multiples of 16 */
    if (!plan.launch || l->form != FORM_f32_f32 || l->groups != 1 || a->cols > MOST ||
        !a->has_weight || !(op->weight.buffer->flags & HW_BUFFER_READ_ONLY))
        return false;
    *norm = (struct norm){
        .residual = address_of(l, 1, &a->residual),
        .x = address_of(l, 2, &a->x),
        .y = address_of(l, 0, &a->y),
        .weight = launch_base(l->operand[3]) + (uint64_t)a->weight_offset,
        .cols = (int)a->cols,
        .eps = a->eps,
    };
    return true;
}

/* Whether the launch can add its product to the residual. */
static bool can_add(const struct group *group, const struct norm *norm)
{
    const struct gemv_args *args = &group->args;
    const struct range residual = floats_at(norm->residual, norm->cols, HW_F32);
    return args->parts == 1 && args->c_type == HW_F32 && args->part[0].c == norm->x &&
           args->part[0].rows == norm->cols &&
           is_disjoint(residual, args, &args->part[0]) &&
           are_apart(residual, floats_at(args->a, args->k, args->a_type));
}

/* Whether the launch can normalise its row: no other group may write the row that a group reads or
 * stores. */
static bool can_norm(const struct group *group, const struct norm *norm)
{
    const struct gemv_args *args = &group->args;
    const struct range residual = floats_at(norm->residual, norm->cols, HW_F32);
    const struct range y = floats_at(norm->y, norm->cols, HW_F32);
    if (args->a != norm->y || args->k != norm->cols || args->a_type != HW_F32 ||
        !are_apart(residual, y) ||
        (args->gated &&
         (!are_apart(residual, floats_at(args->y, args->part[0].rows, args->c_type)) ||
          !are_apart(y, floats_at(args->y, args->part[0].rows, args->c_type)))))
        return false;
    for (int i = 0; i < args->parts; i++)
        if (!is_disjoint(residual, args, &args->part[i]) ||
            !is_disjoint(y, args, &args->part[i]))
            return false;
    return true;
}

/* Makes a norm between two launches part of both. If the norm stores its result over x, x itself
 * need not be stored. */
static bool share_norm(struct group *before, struct group *behind,
                       const struct queue *queue, const struct hw_node *nodes,
                       uint32_t count)
{
    struct norm norm;
    if (queue->device->capability != 90 || before->nodes + 1 >= count ||
        !find_norm(&norm, queue, &nodes[before->nodes]) || !can_add(before, &norm))
        return false;
    const uint32_t next = before->nodes + 1;
    *behind = group_of(queue, &nodes[next], count - next);
    if (!behind->nodes || !can_norm(behind, &norm))
        return false;
    const struct range x = floats_at(norm.x, norm.cols, HW_F32);
    if (norm.y != norm.x && !are_apart(x, floats_at(norm.y, norm.cols, HW_F32)))
        return false;
    before->args.residual = norm.residual;
    if (norm.x == norm.y)
        before->args.part[0].c = 0;
    behind->args.a = norm.residual;
    behind->args.norm = norm.weight;
    behind->args.normed = norm.y;
    behind->args.eps = norm.eps;
    return true;
}

/* ---- what is read ahead ---- */

static int64_t weights_in(const struct gemv_args *args)
{
    int64_t bytes = 0;
    for (int i = 0; i < args->parts; i++)
        bytes += args->part[i].rows * args->part[i].stride;
    return bytes;
}

/* The range to prefetch for a part. It begins at a multiple of 16, which the instruction needs, and
 * has all rows but the last one, which may be shorter than its stride. */
static struct range rows_ahead(const struct gemv_part *part)
{
    const uint64_t end = part->b + (uint64_t)((part->rows - 1) * part->stride);
    const uint64_t begin = (part->b + 15) & ~UINT64_C(15);
    return (struct range){ begin, end > begin ? end : begin };
}

/* A launch prefetches for a larger next launch: the first rows of two parts. */
static void read_ahead(struct gemv_args *args, const struct gemv_args *behind)
{
    enum { MOST = 8 << 20 };
    if (behind->parts < 2 || weights_in(behind) <= weights_in(args))
        return;
    uint64_t each = MOST;
    for (int i = 0; i < 2; i++) {
        const struct range rows = rows_ahead(&behind->part[i]);
        const uint64_t all = rows.end - rows.begin;
        each = all < each ? all : each;
        args->ahead[i] = rows.begin;
    }
    args->ahead_bytes = (int)(each / GEMV_AHEAD_PIECE * GEMV_AHEAD_PIECE);
}

int32_t gemv_launch_nodes(const struct launcher *at, const struct queue *queue,
                          const struct hw_node *nodes, uint32_t count, uint32_t *taken)
{
    struct group first = group_of(queue, nodes, count), second;
    const bool normed = first.nodes && share_norm(&first, &second, queue, nodes, count);
    *taken = 0;
    if (first.nodes < 2 && !normed)
        return HW_OK;
    *taken = first.nodes + (normed ? 1 + second.nodes : 0);
    if (normed)
        read_ahead(&first.args, &second.args);
    const int32_t status = gemv_launch_parts(at, &first.kind, &first.args);
    return status || !normed ? status : gemv_launch_parts(at, &second.kind, &second.args);
}
