/* SPDX-License-Identifier: MIT */
/* Plans matmul_gemv.cu: one row of a, and b stored [n,k]. */
#include "../cuda.h"

#include "matmul_gemv.h"

/* ---- the kernel ---- */

static enum tuned kernel_of(int32_t type)
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

/* What a group has. */
struct shape {
    int warps, stages; /* of the ring of each; 0: it does not fit */
    unsigned shared;
};

/* Codes of few bits take more work for each byte, which more warps hide; others are faster with
 * fewer streams. */
static int64_t most_warps(int type)
{
    return GEMV_IS_FLOAT(type) || type == HW_Q8_0 ? GEMV_WARPS / 2 : GEMV_WARPS;
}

/* A group has a multiprocessor to itself: as many warps as have room for two stages, then as many
 * stages. */
static struct shape shape_of(const struct hw_matmul *op, int64_t k)
{
    enum { DECLARED = 2048 };
    const struct device *device = op->b.buffer->device;
    const int type = op->b.dtype;
    const int64_t steps = (k + GEMV_STEP_NUMBERS(type) - 1) / GEMV_STEP_NUMBERS(type);
    const int64_t a = steps * GEMV_A_BYTES(type), stage = GEMV_STAGE_BYTES(type);
    const int64_t ring = device->shared_most - DECLARED - a;
    int64_t warps = ring / (2 * stage);
    if (warps < 8)
        return (struct shape){ 0 };
    warps = warps < most_warps(type) ? warps : most_warps(type);
    int64_t stages = ring / (warps * stage);
    stages = stages < GEMV_STAGES ? stages : GEMV_STAGES;
    return (struct shape){ (int)warps, (int)stages,
                           (unsigned)(warps * stages * stage + a) };
}

/* ---- what fits ---- */

static bool is_one_row(const struct hw_tensor *c)
{
    int64_t outer = 1;
    for (int i = 0; i < c->rank - 1; i++)
        outer = c->extent[i] == 1 ? outer : 0;
    return outer == 1;
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

static bool is_aligned(const struct hw_matmul *op, const struct matmul_args *m)
{
    const uint64_t align = alignment_of(op->b.dtype);
    const uint64_t first = launch_base(&op->b) + (uint64_t)m->b.offset;
    const uint64_t a = launch_base(&op->a) + (uint64_t)m->a.offset;
    return first % align == 0 && (uint64_t)m->b.stride[2] % align == 0 &&
           a % (op->a.dtype == HW_F32 ? 16 : 8) == 0;
}

/* ---- launches ---- */

/* All but the parts. */
static struct gemv_args args_of(const struct plan *plan, const struct hw_matmul *op)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    return (struct gemv_args){
        .a = launch_base(&op->a) + (uint64_t)m->a.offset,
        .k = (int)m->k,
        .stages = shape_of(op, m->k).stages,
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

static int32_t launch_parts(const struct launcher *at, const struct hw_matmul *first,
                            const struct gemv_args *args)
{
    const struct shape shape = shape_of(first, args->k);
    const int pieces = args->rows / (args->gated ? 2 : 1), units = at->device->units;
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = kernel_of(first->b.dtype),
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
    struct gemv_args args = args_of(plan, op);
    add_part(&args, plan, op);
    return launch_parts(at, op, &args);
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
    if (!op->b.buffer)
        return "b is not in device memory";
    if (!is_one_row(&op->c))
        return "c has more than one row";
    if (m->k == 0 || m->k > SHARED_MOST || m->n > INT32_MAX / 4 ||
        (GEMV_IS_FLOAT(m->b_type) && m->k % 8))
        return "n or k does not suit this row";
    if (!is_aligned(op, m))
        return "a or b is not aligned";
    if (!shape_of(op, m->k).stages)
        return "a does not fit into shared memory";
    return NULL;
}
