/* SPDX-License-Identifier: MIT */
/* softmax, as kernels/softmax.c defines it. A row is read from memory once, for the maximum of t =
 * scale * x + slope * mask. A row of f32 without a mask is then read again from the cache, and y
 * holds its exponentials until their sum is known; other rows are kept as f32 in the thread's
 * memory. */
#include "curves.h"

DECLARE_PLAN(softmax);

enum { SUMS = 4 }; /* side by side: an addition takes several cycles */

/* A row. */
struct row {
    char *y;
    const char *x, *mask; /* mask: NULL if it is a single value, stored in `flat` */
    int64_t cols;
    int mask_type;
    float scale, slope, flat, sink; /* sink: -inf if there is none */
};

/* ---- t and its maximum ---- */

INLINE vf t_of(int type, int mask_type, const struct row *r, int64_t i)
{
    vf t = vf_fma(vf_load_as(type, r->x, i), vf_set(r->scale), vf_set(r->flat));
    if (mask_type)
        t += scaled_mask(vf_load_as(mask_type, r->mask, i), vf_set(r->slope));
    return t;
}

/* t of the last n elements. The lanes beyond are -inf, which changes neither the maximum nor the
 * sum. */
INLINE vf t_of_part(int type, int mask_type, const struct row *r, int64_t i, int64_t n)
{
    vf t = vf_fma(vf_load_part_as(type, r->x, i, n), vf_set(r->scale), vf_set(r->flat));
    if (mask_type)
        t += scaled_mask(vf_load_part_as(mask_type, r->mask, i, n), vf_set(r->slope));
    return vf_part(t, n, vf_set(-INFINITY));
}

/* The maximum of t; stores t at `to` unless that is NULL. A NaN makes the sum NaN, whatever the
 * maximum is. */
INLINE float greatest_t(int type, int mask_type, const struct row *r, float *to)
{
    vf best[SUMS];
    int64_t i = 0;
    for (int k = 0; k < SUMS; k++)
        best[k] = vf_set(-INFINITY);
    for (; i + SUMS * LANES <= r->cols; i += SUMS * LANES)
        for (int k = 0; k < SUMS; k++) {
            const vf t = t_of(type, mask_type, r, i + k * LANES);
            best[k] = vf_max(t, best[k]);
            if (to)
                vf_store(to + i + k * LANES, t);
        }
    for (; i < r->cols; i += LANES) {
        const int64_t n = r->cols - i < LANES ? r->cols - i : LANES;
        const vf t = t_of_part(type, mask_type, r, i, n);
        best[0] = vf_max(t, best[0]);
        if (to)
            vf_store_part(to + i, t, n);
    }
    return vf_greatest(vf_max(vf_max(best[0], best[1]), vf_max(best[2], best[3])));
}

#define KEEP(TYPE, type)                                                                   \
    static float keep_##type(const struct row *r, float *to)                               \
    {                                                                                      \
        switch (r->mask ? r->mask_type : 0) {                                              \
        case HW_F32:                                                                       \
            return greatest_t(TYPE, HW_F32, r, to);                                        \
        case HW_F16:                                                                       \
            return greatest_t(TYPE, HW_F16, r, to);                                        \
        case HW_BF16:                                                                      \
            return greatest_t(TYPE, HW_BF16, r, to);                                       \
        default:                                                                           \
            return greatest_t(TYPE, 0, r, to);                                             \
        }                                                                                  \
    }
KEEP(HW_F32, f32)
KEEP(HW_F16, f16)
KEEP(HW_BF16, bf16)

/* ---- exponentials ---- */

/* A row of f32; t = scale * x + flat takes one multiplication less than from the op's operands. */
struct line {
    const float *x;
    int64_t cols;
    float scale, flat;
};

INLINE vf less_top(const struct line *l, int64_t i, vf top)
{
    return vf_fma(vf_load(l->x + i), vf_set(l->scale), vf_set(l->flat)) - top;
}

INLINE vf less_top_part(const struct line *l, int64_t i, int64_t n, vf top)
{
    const vf t = vf_fma(vf_load_part(l->x + i, n), vf_set(l->scale), vf_set(l->flat));
    return vf_part(t, n, vf_set(-INFINITY)) - top;
}

/* The sum of e^(t - top); keeps the exponentials at `to` unless that is NULL. */
INLINE float exponentials(const struct line *l, float *to, float greatest)
{
    const vf top = vf_set(greatest);
    vf sum[SUMS] = { vf_set(0), vf_set(0), vf_set(0), vf_set(0) };
    int64_t i = 0;
    for (; i + SUMS * LANES <= l->cols; i += SUMS * LANES)
        for (int k = 0; k < SUMS; k++) {
            const vf e = vf_exp(less_top(l, i + k * LANES, top));
            sum[k] += e;
            if (to)
                vf_store(to + i + k * LANES, e);
        }
    for (; i < l->cols; i += LANES) {
        const int64_t n = l->cols - i < LANES ? l->cols - i : LANES;
        const vf e = vf_exp(less_top_part(l, i, n, top));
        sum[0] += e;
        if (to)
            vf_store_part(to + i, e, n);
    }
    return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static float exp_of(float x)
{
    float e[LANES];
    vf_store(e, vf_exp(vf_set(x)));
    return e[0];
}

/* ---- results ---- */

/* y = e * scale. */
INLINE void scale_line(int type, char *y, const float *e, int64_t cols, float scale)
{
    const vf s = vf_set(scale);
    int64_t i = 0;
    for (; i + LANES <= cols; i += LANES)
        vf_store_as(type, y, i, vf_load(e + i) * s);
    if (i < cols)
        vf_store_part_as(type, y, i, vf_load_part(e + i, cols - i) * s, cols - i);
}

/* y = t - top - log_sum. */
INLINE void log_line(int type, char *y, const struct line *l, float greatest, float log_sum)
{
    const vf top = vf_set(greatest), less = vf_set(log_sum);
    int64_t i = 0;
    for (; i + LANES <= l->cols; i += LANES)
        vf_store_as(type, y, i, less_top(l, i, top) - less);
    if (i < l->cols) {
        const int64_t n = l->cols - i;
        vf_store_part_as(type, y, i, less_top_part(l, i, n, top) - less, n);
    }
}

/* y from t in `l`. The exponentials are stored at `at` meanwhile: in y, or over t. */
INLINE void finish(int type, const struct row *r, const struct line *l, float *at,
                   float greatest, bool log_form)
{
    float top = r->sink > greatest ? r->sink : greatest;
    if (top == -INFINITY) /* -inf - -inf would be NaN; with 0 every exponential is 0 */
        top = 0.0f;
    float sum = log_form ? exponentials(l, NULL, top) : exponentials(l, at, top);
    if (r->sink != -INFINITY)
        sum += exp_of(r->sink - top);
    if (log_form)
        log_line(type, r->y, l, top, sum > 0.0f ? logf(sum) : sum); /* a NaN stays one */
    else
        scale_line(type, r->y, at, l->cols, sum == 0.0f ? 0.0f : 1.0f / sum);
}

/* f32 without a mask for each element. */
static void direct_row(const struct row *r, bool log_form)
{
    const struct line line = { (const float *)(const void *)r->x, r->cols, r->scale,
                               r->flat };
    finish(HW_F32, r, &line, (float *)(void *)r->y, greatest_t(HW_F32, 0, r, NULL),
           log_form);
}

#define KEPT_ROW(TYPE, type)                                                               \
    static void kept_row_##type(const struct row *r, float *own, bool log_form)            \
    {                                                                                      \
        const float greatest = keep_##type(r, own);                                        \
        finish(TYPE, r, &(struct line){ own, r->cols, 1.0f, 0.0f }, own, greatest,         \
               log_form);                                                                  \
    }
KEPT_ROW(HW_F32, f32)
KEPT_ROW(HW_F16, f16)
KEPT_ROW(HW_BF16, bf16)

/* ---- the row of kernels.def ---- */

/* The first byte of the mask's row. */
static const char *mask_of(const struct plan *plan, int64_t row)
{
    const struct softmax_args *a = &plan->lowered.args.softmax;
    const int64_t *n = a->mask_extents.n;
    const int64_t i2 = row % a->n2, i1 = row / a->n2 % a->n1, i0 = row / a->n2 / a->n1;
    return (const char *)plan->pointer[2] + a->mask.offset + i0 % n[0] * a->mask.stride[0] +
           i1 % n[1] * a->mask.stride[1] + i2 % n[2] * a->mask.stride[2];
}

static float first_of(int type, const void *p)
{
    float v[LANES];
    vf_store(v, type == HW_F32   ? vf_load_part(p, 1)
                : type == HW_F16 ? vf_load_part_f16(p, 1)
                                 : vf_load_part_bf16(p, 1));
    return v[0];
}

static float float_at(const struct plan *plan, int operand, int64_t offset, int64_t i)
{
    return (
        (const float *)(const void *)((const char *)plan->pointer[operand] + offset))[i];
}

static struct row row_at(const struct plan *plan, int64_t i)
{
    const struct softmax_args *a = &plan->lowered.args.softmax;
    const int64_t head = a->has_slopes || a->has_sinks ? i / a->n2 % a->n1 : 0;
    struct row r = {
        .y = row_of(plan->pointer[0], &a->y, a->n1, a->n2, i),
        .x = row_of(plan->pointer[1], &a->x, a->n1, a->n2, i),
        .cols = a->cols,
        .mask_type = a->mask_type,
        .scale = a->scale,
        .slope = a->has_slopes ? float_at(plan, 3, a->slopes_offset, head) : 1.0f,
        .sink = a->has_sinks ? float_at(plan, 4, a->sinks_offset, head) : -INFINITY,
    };
    if (!a->mask_type)
        return r;
    const char *mask = mask_of(plan, i);
    if (a->mask_step) {
        r.mask = mask;
    } else {
        r.flat = first_of(a->mask_type, mask);
        r.flat = r.flat == -INFINITY ? r.flat : r.slope * r.flat;
    }
    return r;
}

static void run_softmax(const struct plan *plan, int64_t first, int64_t end,
                        uint32_t thread)
{
    const struct softmax_args *a = &plan->lowered.args.softmax;
    const int type = ((const struct hw_softmax *)plan->op)->x.dtype;
    for (int64_t i = first; i < end; i++) {
        const struct row r = row_at(plan, i);
        if (type == HW_F16)
            kept_row_f16(&r, plan_own(plan, thread), a->log_form);
        else if (type == HW_BF16)
            kept_row_bf16(&r, plan_own(plan, thread), a->log_form);
        else if (r.mask)
            kept_row_f32(&r, plan_own(plan, thread), a->log_form);
        else
            direct_row(&r, a->log_form);
    }
}

const char *PLAN(softmax)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const struct hw_softmax *op = args;
    const char *why = plan_lowered(plan, row, args);
    if (why)
        return why;
    plan->run = run_softmax;
    plan->work /= 8; /* measured against the portable kernel's estimate */
    if (op->x.dtype != HW_F32 || plan->lowered.args.softmax.mask_step)
        plan->own_bytes = (uint64_t)plan->lowered.args.softmax.cols * sizeof(float);
    return NULL;
}
