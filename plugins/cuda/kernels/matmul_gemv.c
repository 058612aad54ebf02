/* SPDX-License-Identifier: MIT */
/* Plans matmul_gemv.cu: one row of a, and b stored [n,k]. */
#include "matmul_gemv.h"
#include "../cuda.h"

static enum tuned kernel_of(int32_t type)
{
    switch (type) {
    case HW_F16:
        return TUNED_gemv_f16;
    case HW_BF16:
        return TUNED_gemv_bf16;
    case HW_Q8_0:
        return TUNED_gemv_q8_0;
    case HW_Q4_0:
        return TUNED_gemv_q4_0;
    case HW_Q4_K:
        return TUNED_gemv_q4_K;
    case HW_Q6_K:
        return TUNED_gemv_q6_K;
    default:
        return TUNED_COUNT;
    }
}

static bool is_one_product(const struct hw_tensor *c)
{
    int64_t outer = 1;
    for (int i = 0; i < c->rank - 1; i++)
        outer = c->extent[i] == 1 ? outer : 0;
    return outer == 1;
}

/* Where numbers are read from shared memory in 16 bytes, as they lie in device memory. */
static bool is_aligned(const struct hw_matmul *op, const struct matmul_args *m)
{
    const uint64_t align = op->b.dtype == HW_Q4_K || GEMV_IS_FLOAT(op->b.dtype) ? 16 : 2;
    const uint64_t first = launch_base(&op->b) + (uint64_t)m->b.offset;
    return first % align == 0 && (uint64_t)m->b.stride[2] % align == 0;
}

/* As many warps as the shared memory has room for, next to a. */
static int64_t warps_of(const struct matmul_args *m)
{
    const int64_t step = GEMV_STEP_NUMBERS(m->b_type);
    const int64_t a = (m->k + step - 1) / step * GEMV_A_BYTES(m->b_type);
    const int64_t warps = (SHARED_MOST - a) / GEMV_RING_BYTES(m->b_type);
    return warps < GEMV_WARPS ? warps : GEMV_WARPS;
}

/* As many groups as there are multiprocessors, at most: each takes several runs of rows. */
static int32_t launch_gemv(const struct launcher *at, const struct plan *plan,
                           const void *args)
{
    const struct hw_matmul *op = args;
    const unsigned groups = (unsigned)plan->lowered.groups,
                   units = (unsigned)at->device->units;
    return launch_as_portable(
        at,
        &(struct launch){ .kernel = kernel_of(op->b.dtype),
                          .groups = { groups < units ? groups : units, 1, 1 },
                          .threads = plan->threads,
                          .shared = plan->shared },
        plan);
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
    if (kernel_of(op->b.dtype) == TUNED_COUNT)
        return "b has a type that this row does not take";
    if (!is_one_product(&op->c))
        return "c has more than one row";
    if (m->k == 0 || m->k > SHARED_MOST || (GEMV_IS_FLOAT(m->b_type) && m->k % 8))
        return "k does not suit this row";
    if (!is_aligned(op, m))
        return "b is not aligned";
    const int64_t warps = warps_of(m), step = GEMV_STEP_NUMBERS(m->b_type);
    if (warps < 4)
        return "a does not fit into shared memory";
    plan->threads = (unsigned)warps * 32;
    plan->shared = (unsigned)(warps * GEMV_RING_BYTES(m->b_type) +
                              (m->k + step - 1) / step * GEMV_A_BYTES(m->b_type));
    if (plan->lowered.groups)
        plan->lowered.groups = (m->n + GEMV_ROWS * warps - 1) / (GEMV_ROWS * warps);
    return NULL;
}
