/* SPDX-License-Identifier: MIT */
/* Plans rows.cu: operands of whole pieces of 16 bytes (except for get_rows); for norms and softmax,
 * rows that fit a group's registers. */
#include "../launch.h"

#include "rows.h"

#define NOT_ALIGNED "an operand is not made of whole pieces of 16 bytes"

/* ---- kernels by type ---- */

/* A family, and the one for f32 weights beside activations of another type. */
struct families {
    enum family same, wide;
};

static enum tuned kernel_of(const struct plan *plan)
{
    static const struct families families[] = {
        [PORTABLE_rmsnorm] = { FAMILY_rows_rmsnorm, FAMILY_rows_rmsnorm_wide },
        [PORTABLE_add_rmsnorm] = { FAMILY_rows_add_rmsnorm, FAMILY_rows_add_rmsnorm_wide },
        [PORTABLE_softmax] = { .same = FAMILY_rows_softmax },
        [PORTABLE_silu] = { .same = FAMILY_rows_silu },
        [PORTABLE_swiglu] = { .same = FAMILY_rows_swiglu },
        [PORTABLE_add] = { .same = FAMILY_rows_add },
        [PORTABLE_mul] = { .same = FAMILY_rows_mul },
        [PORTABLE_argmax] = { .same = FAMILY_rows_argmax },
        [PORTABLE_get_rows] = { .same = FAMILY_rows_get_rows },
    };
    static const int32_t types[FORM_COUNT] = {
        [FORM_f32_f32] = HW_F32,    [FORM_f16_f16] = HW_F16,   [FORM_f16_f32] = HW_F16,
        [FORM_bf16_bf16] = HW_BF16, [FORM_bf16_f32] = HW_BF16,
    };
    const struct families *f = &families[plan->lowered.kernel];
    const enum portable_form form = plan->lowered.form;
    const bool wide = f->wide && (form == FORM_f16_f32 || form == FORM_bf16_f32);
    return tuned_of(wide ? f->wide : f->same, types[form]);
}

/* ---- pieces of 16 bytes ---- */

/* Whether all rows of an operand begin at a multiple of 16. */
static bool is_aligned(const struct lowered *l, uint32_t operand, const struct place *p)
{
    uint64_t all = launch_base(l->operand[operand]) + (uint64_t)p->offset;
    for (int i = 0; i < 3; i++)
        all |= (uint64_t)p->stride[i];
    return all % 16 == 0;
}

static int64_t quads_of(const struct hw_tensor *t, int64_t cols)
{
    const int64_t width = 16 / hw_dtype_bytes(t->dtype);
    return cols % width ? 0 : cols / width;
}

static int32_t launch_with(const struct launcher *at, const struct plan *plan,
                           unsigned shared)
{
    return launch_as_portable(
        at,
        &(struct launch){ .kernel = kernel_of(plan),
                          .groups = { (unsigned)plan->lowered.groups, 1, 1 },
                          .threads = plan->threads,
                          .shared = shared,
                          .early = true },
        plan);
}

static int32_t launch_rows(const struct launcher *at, const struct plan *plan,
                           const void *op)
{
    (void)op;
    return launch_with(at, plan, 0);
}

/* ---- a group for each row ---- */

/* Pieces of a row per thread. Few rows are faster if more threads share each. With many rows, fewer
 * threads per row let a multiprocessor work on more rows at once. */
static int64_t quads_each(int64_t rows)
{
    enum { FEW = 128, MANY = 1024 };
    return rows <= FEW ? 1 : rows <= MANY ? 2 : ROWS_QUADS;
}

/* If there are about as many rows as multiprocessors, or twice as many, two groups fit on each, but
 * not three. Otherwise groups of an early launch would gather where the launch before it has left
 * room, and that multiprocessor would finish last. */
static int32_t launch_whole_rows(const struct launcher *at, const struct plan *plan,
                                 const void *op)
{
    const int64_t rows = plan->lowered.groups, units = at->device->units;
    const bool few = rows > units / 4 && rows <= 2 * units;
    (void)op;
    return launch_with(at, plan, few ? (unsigned)at->device->shared_most / 3 : 0);
}

static const char *plan_row(struct plan *plan, const struct hw_tensor *x, int64_t cols)
{
    enum { WARP = 32 };
    const int64_t quads = quads_of(x, cols);
    if (quads == 0 || quads > ROWS_THREADS * ROWS_QUADS)
        return "a row must be whole pieces of 16 bytes, at most 32 KiB";
    const int64_t each = quads_each(plan->lowered.groups);
    const int64_t threads = ((quads + each - 1) / each + WARP - 1) / WARP * WARP;
    plan->threads = (unsigned)(threads < ROWS_THREADS ? threads : ROWS_THREADS);
    plan->launch = launch_whole_rows;
    return NULL;
}

static int weight_kind(const struct hw_tensor *weight)
{
    if (!weight->dtype)
        return 0;
    const bool constant = weight->buffer && weight->buffer->flags & HW_BUFFER_READ_ONLY;
    return constant ? ROWS_CONSTANT : 1;
}

kernel_plan_fn plan_rows_rmsnorm, plan_rows_add_rmsnorm, plan_rows_softmax;
const char *plan_rows_rmsnorm(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const struct hw_rmsnorm *op = args;
    struct lowered *l = &plan->lowered;
    struct rmsnorm_args *a = &l->args.rmsnorm;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const struct place weight = { .offset = a->weight_offset };
    if (!is_aligned(l, 0, &a->y) || !is_aligned(l, 1, &a->x) ||
        (a->has_weight && !is_aligned(l, 2, &weight)))
        return NOT_ALIGNED;
    a->has_weight = weight_kind(&op->weight);
    return plan_row(plan, &op->x, a->cols);
}

const char *plan_rows_add_rmsnorm(struct plan *plan, const struct kernel_row *row,
                                  const void *args)
{
    const struct hw_add_rmsnorm *op = args;
    struct lowered *l = &plan->lowered;
    struct add_rmsnorm_args *a = &l->args.add_rmsnorm;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const struct place weight = { .offset = a->weight_offset };
    if (!is_aligned(l, 0, &a->y) || !is_aligned(l, 1, &a->residual) ||
        !is_aligned(l, 2, &a->x) || (a->has_weight && !is_aligned(l, 3, &weight)))
        return NOT_ALIGNED;
    a->has_weight = weight_kind(&op->weight);
    return plan_row(plan, &op->x, a->cols);
}

const char *plan_rows_softmax(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const struct hw_softmax *op = args;
    struct lowered *l = &plan->lowered;
    const struct softmax_args *a = &l->args.softmax;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    if (!is_aligned(l, 0, &a->y) || !is_aligned(l, 1, &a->x))
        return NOT_ALIGNED;
    return plan_row(plan, &op->x, a->cols);
}

/* ---- elementwise: a group for some pieces of a row ---- */

static const char *plan_elements(struct plan *plan, const struct hw_tensor *y, int64_t cols)
{
    const int64_t quads = quads_of(y, cols);
    const int64_t rows = plan->lowered.groups / ((cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN);
    const int64_t spans = (quads + ROWS_SPAN - 1) / ROWS_SPAN;
    int64_t groups;
    if (quads == 0 || quads > INT32_MAX / 2 ||
        __builtin_mul_overflow(rows, spans, &groups) || groups > INT32_MAX)
        return "a row must be whole pieces of 16 bytes";
    plan->lowered.groups = groups;
    plan->threads = ROWS_SPAN;
    plan->launch = launch_rows;
    return NULL;
}

kernel_plan_fn plan_rows_silu, plan_rows_swiglu, plan_rows_add, plan_rows_mul;
const char *plan_rows_silu(struct plan *plan, const struct kernel_row *row,
                           const void *args)
{
    struct lowered *l = &plan->lowered;
    const struct silu_args *a = &l->args.silu;
    const char *why = launch_lower(plan, row, args);
    if (why || l->groups == 0)
        return why ? why : "there is nothing to do";
    if (!is_aligned(l, 0, &a->y) || !is_aligned(l, 1, &a->x))
        return NOT_ALIGNED;
    return plan_elements(plan, l->operand[0], a->cols);
}

const char *plan_rows_swiglu(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    struct lowered *l = &plan->lowered;
    const struct swiglu_args *a = &l->args.swiglu;
    const char *why = launch_lower(plan, row, args);
    if (why || l->groups == 0)
        return why ? why : "there is nothing to do";
    if (!is_aligned(l, 0, &a->y) || !is_aligned(l, 1, &a->gate) ||
        !is_aligned(l, 2, &a->up))
        return NOT_ALIGNED;
    return plan_elements(plan, l->operand[0], a->cols);
}

/* add and mul have the same arguments. */
static const char *plan_binary(struct plan *plan, const struct kernel_row *row,
                               const void *args, enum portable kernel)
{
    struct lowered *l = &plan->lowered;
    const struct binary_args *a = &l->args.add;
    const char *why = launch_lower(plan, row, args);
    if (why || l->groups == 0)
        return why ? why : "there is nothing to do";
    if (l->kernel != kernel || !a->b_step)
        return "the inputs differ in type or shape";
    if (!is_aligned(l, 0, &a->y) || !is_aligned(l, 1, &a->a) || !is_aligned(l, 2, &a->b))
        return NOT_ALIGNED;
    return plan_elements(plan, l->operand[0], a->cols);
}

const char *plan_rows_add(struct plan *plan, const struct kernel_row *row, const void *args)
{
    return plan_binary(plan, row, args, PORTABLE_add);
}

const char *plan_rows_mul(struct plan *plan, const struct kernel_row *row, const void *args)
{
    return plan_binary(plan, row, args, PORTABLE_mul);
}

/* ---- argmax and get_rows ---- */

kernel_plan_fn plan_rows_argmax, plan_rows_get_rows;
const char *plan_rows_argmax(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    struct lowered *l = &plan->lowered;
    const struct argmax_args *a = &l->args.argmax;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    if (!is_aligned(l, 1, &a->x))
        return NOT_ALIGNED;
    if (l->groups > INT32_MAX / ROWS_SHARES || a->cols > INT32_MAX / 2)
        return "too many or too long rows";
    l->groups *= ROWS_SHARES;
    plan->threads = ROWS_THREADS;
    plan->launch = launch_rows;
    return NULL;
}

const char *plan_rows_get_rows(struct plan *plan, const struct kernel_row *row,
                               const void *args)
{
    struct lowered *l = &plan->lowered;
    const struct rows_args *a = &l->args.get_rows;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const int64_t spans = (a->cols / 4 + ROWS_SPAN - 1) / ROWS_SPAN;
    if (a->cols == 0 || a->cols % 4 || a->cols > INT32_MAX / 2 ||
        l->groups > INT32_MAX / spans)
        return "a row must have a multiple of four elements";
    l->groups *= spans;
    plan->threads = ROWS_SPAN;
    plan->launch = launch_rows;
    return NULL;
}
