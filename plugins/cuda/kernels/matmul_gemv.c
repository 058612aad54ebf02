/* SPDX-License-Identifier: MIT */
/* Plans matmul_gemv.cu: up to 8 rows of a, or 20 that are rounded, and b stored [n,k]. */
#include "gemv_plan.h"

/* ---- the kernel ---- */

/* The resources of a group. */
struct shape {
    int warps, stages; /* of each ring; 0: it does not fit */
    int rows;          /* of b, that a warp computes at a time */
    unsigned shared;
};

/* Bytes that groups of one kernel need. */
struct need {
    int64_t a, stage; /* a in shared memory; a stage of a warp's ring */
};

static struct need need_of(const struct gemv_kind *kind, int rows)
{
    const int type = kind->type;
    const int64_t steps = (kind->k + GEMV_STEP_NUMBERS(type) - 1) / GEMV_STEP_NUMBERS(type);
    const int64_t a = steps * GEMV_A_BYTES(type, kind->rounds ? ROUNDED : EXACT);
    return (struct need){ a * kind->tokens, GEMV_STAGE_BYTES(type, rows) };
}

/* The dynamic memory available to each of `groups` groups on a multiprocessor. */
static int64_t room_for(const struct device *device, int groups)
{
    enum { DECLARED = 2048, RESERVED = 1024 };
    return (device->shared_most + RESERVED) / groups - RESERVED - DECLARED;
}

/* As many stages as fit; none if fewer than two fit. */
static struct shape shape_with(const struct need *need, int64_t warps, int64_t room)
{
    int64_t stages = (room - need->a) / (warps * need->stage);
    stages = stages < GEMV_STAGES ? stages : GEMV_STAGES;
    if (room < need->a || stages < 2)
        return (struct shape){ 0 };
    return (struct shape){ .warps = (int)warps,
                           .stages = (int)stages,
                           .shared = (unsigned)(warps * stages * need->stage + need->a) };
}

/* The most warps that have room. */
static struct shape shape_in(const struct need *need, int64_t room)
{
    struct shape shape = { 0 };
    for (int warps = GEMV_WARPS; warps >= GEMV_WARPS / 2 && !shape.stages; warps -= 4)
        shape = shape_with(need, warps, room);
    return shape;
}

/* Two groups must never fit on one multiprocessor. Otherwise groups of an early launch would gather
 * where the launch before it has left room, and that multiprocessor would finish last. */
static struct shape shape_with_rows(const struct device *device,
                                    const struct gemv_kind *kind, int rows)
{
    const struct need need = need_of(kind, rows);
    const int64_t least = room_for(device, 2) + 16;
    struct shape shape = shape_in(&need, room_for(device, 1));
    if (shape.stages && shape.shared < least)
        shape.shared = (unsigned)least;
    shape.rows = rows;
    return shape;
}

/* Whether some warps of a group load a row while the others fill their rings. */
static bool has_stagers(const struct device *device, const struct gemv_kind *kind)
{
    return device->capability == 90 && kind->tokens == 1;
}

/* Whether each warp has a few rows of b. */
static bool is_tall(const struct device *device, const struct gemv_kind *kind, int64_t rows)
{
    return has_stagers(device, kind) && rows >= 4 * GEMV_WARPS * (int64_t)device->units &&
           (kind->rounds || GEMV_IS_FLOAT(kind->type)) &&
           tuned_of(FAMILY_gemv_tall, kind->type);
}

/* `rows`: of b. */
static struct shape shape_of(const struct device *device, const struct gemv_kind *kind,
                             int64_t rows)
{
    struct shape shape = { 0 };
    if (is_tall(device, kind, rows))
        shape = shape_with_rows(device, kind, GEMV_TALL_ROWS);
    return shape.stages ? shape : shape_with_rows(device, kind, GEMV_ROWS);
}

/* ---- what fits ---- */

int64_t gemv_rows(const struct hw_tensor *c)
{
    for (int i = 0; i < c->rank - 2; i++)
        if (c->extent[i] != 1)
            return 0;
    return c->extent[c->rank - 2];
}

struct gemv_kind gemv_kind_of(const struct hw_matmul *op, const struct plan *plan)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const int64_t passes = (m->m + GEMV_TOKENS - 1) / GEMV_TOKENS;
    const int64_t tokens = plan->rounds ? (m->m + passes - 1) / passes : 1;
    return (struct gemv_kind){
        .type = op->b.dtype, .k = m->k, .tokens = (int)tokens, .rounds = plan->rounds
    };
}

/* Numbers keep their alignment from device memory in shared memory; this is the size of reads that
 * it allows. */
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

/* Types for which a lane reads two neighbouring blocks at a time. */
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

struct gemv_args gemv_args_of(const struct plan *plan, const struct hw_matmul *op)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    return (struct gemv_args){
        .a = launch_base(&op->a) + (uint64_t)m->a.offset,
        .k = (int)m->k,
        .a_stride = m->a.stride[2],
        .c_stride = m->c.stride[2],
        .a_type = m->a_type,
        .c_type = m->c_type,
        .tokens = 1,
        .aligned = 1,
        .constant = 1,
    };
}

void gemv_add_part(struct gemv_args *args, const struct plan *plan,
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
    if ((args->part[args->parts - 1].b | (uint64_t)m->b.stride[2]) % 16)
        args->aligned = 0;
    if (!(op->b.buffer->flags & HW_BUFFER_READ_ONLY))
        args->constant = 0;
}

/* ---- parts of two types ---- */

/* The larger needs of the groups of both types. */
static struct shape mixed_shape(const struct device *device, const struct gemv_kind *kind)
{
    const struct gemv_kind last = { kind->last, kind->k, 1, true, HW_NONE };
    const struct shape a = shape_with_rows(device, kind, GEMV_MIXED_ROWS(kind->type));
    const struct shape b = shape_with_rows(device, &last, GEMV_ROWS);
    return (struct shape){ .warps = a.warps,
                           .stages = a.warps != b.warps    ? 0
                                     : a.stages < b.stages ? a.stages
                                                           : b.stages,
                           .rows = a.rows,
                           .shared = a.shared > b.shared ? a.shared : b.shared };
}

bool gemv_may_end_with(const struct device *device, const struct gemv_kind *kind,
                       int32_t type)
{
    struct gemv_kind both = *kind;
    both.last = type;
    return has_stagers(device, kind) && kind->rounds && !kind->last && type == HW_Q6_K &&
           tuned_of(FAMILY_gemv_mixed, kind->type) && mixed_shape(device, &both).stages;
}

/* The number of groups for the last part: about its share of all bytes, rounded so that the last
 * pass over its rows is a full one. With one row, the stride may be missing. */
static int groups_of_last(const struct gemv_args *args, int64_t units)
{
    const struct gemv_part *last = &args->part[args->parts - 1];
    const int64_t pass = GEMV_WARPS * GEMV_ROWS, bytes = last->rows * last->stride;
    const int64_t others = (args->rows - last->rows) * args->part[0].stride;
    const int64_t fair = units * bytes / (bytes + others + 1) + 1;
    const int64_t passes = (last->rows + pass * fair / 2) / (pass * fair);
    const int64_t most = pass * (passes > 1 ? passes : 1);
    const int64_t groups = (last->rows + most - 1) / most;
    return (int)(groups < units ? groups : units - 1);
}

/* ---- the launch of all parts ---- */

/* gemv_tall: a warp computes more rows of b at a time. gemv_mixed: the parts of b have two types,
 * the last one q6_K. gemv_int8_few: a few rows of a. */
static enum tuned kernel_of(const struct gemv_kind *kind, const struct shape *shape)
{
    const enum family family = kind->last                      ? FAMILY_gemv_mixed
                               : shape->rows == GEMV_TALL_ROWS ? FAMILY_gemv_tall
                               : !kind->rounds                 ? FAMILY_gemv
                               : kind->tokens > 1              ? FAMILY_gemv_int8_few
                                                               : FAMILY_gemv_int8;
    return tuned_of(family, kind->type);
}

/* Whether all rows of b can be requested before a is there. */
static bool fits_rings(const struct gemv_kind *kind, const struct shape *shape,
                       int64_t rows, int64_t units)
{
    const int64_t pass = units * shape->warps * shape->rows;
    const int64_t steps = (kind->k + GEMV_STEP_NUMBERS(kind->type) - 1) /
                          GEMV_STEP_NUMBERS(kind->type);
    return (rows + pass - 1) / pass * steps <= shape->stages;
}

int32_t gemv_launch_parts(const struct launcher *at, const struct gemv_kind *kind,
                          struct gemv_args *args)
{
    const struct shape shape = kind->last ? mixed_shape(at->device, kind)
                                          : shape_of(at->device, kind, args->rows);
    const int stagers = has_stagers(at->device, kind) ? GEMV_STAGERS : 0;
    const int units = at->device->units;
    const int pieces = kind->last ? units : args->rows / (args->gated ? 2 : 1);
    args->stages = shape.stages;
    args->groups = kind->last ? units - groups_of_last(args, units) : 0;
    if (kind->last || !fits_rings(kind, &shape, args->rows, units))
        args->ahead_bytes = 0;
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = kernel_of(kind, &shape),
            .groups = { (unsigned)(pieces < units ? pieces : units), 1, 1 },
            .threads = (unsigned)(shape.warps + stagers) * 32,
            .shared = shape.shared,
            .early = true,
        },
        args);
}

int32_t gemv_launch(const struct launcher *at, const struct plan *plan, const void *op)
{
    const int64_t rows = plan->lowered.args.matmul.m;
    const struct gemv_kind kind = gemv_kind_of(op, plan);
    struct gemv_args args = gemv_args_of(plan, op);
    int32_t status = HW_OK;
    gemv_add_part(&args, plan, op);
    for (int64_t row = 0; row < rows && !status; row += kind.tokens) {
        args.tokens = (int)(rows - row < kind.tokens ? rows - row : kind.tokens);
        status = gemv_launch_parts(at, &kind, &args);
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
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    plan->launch = gemv_launch;
    plan->rounds = row->needs & BYTES;
    if (!op->b.buffer)
        return "b is not in device memory";
    const int64_t rows = gemv_rows(&op->c);
    if (rows < 1 || rows > (plan->rounds ? GEMV_MOST : GEMV_TOKENS))
        return "c must have one batch and 1 to 8 rows (to 20 with blocks in int8)";
    if (plan->rounds && GEMV_IS_FLOAT(m->b_type))
        return "b has no blocks";
    if (m->k == 0 || m->k > SHARED_MOST || m->n > INT32_MAX / 4 ||
        (GEMV_IS_FLOAT(m->b_type) && m->k % 8))
        return "n or k is too large, or k of floats must be a multiple of 8";
    if (is_paired(m->b_type) && m->k / 32 % 2)
        return "rows of b have an odd number of blocks";
    if (!is_aligned(op, m))
        return "a or b is not aligned";
    const struct gemv_kind kind = gemv_kind_of(op, plan);
    if (!shape_of(op->b.buffer->device, &kind, m->n).stages)
        return "a does not fit into shared memory";
    return NULL;
}
