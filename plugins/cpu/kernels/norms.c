/* SPDX-License-Identifier: MIT */
/* rmsnorm, add_rmsnorm and layernorm, as defined by the portable kernels of these names. The first
 * sum reads a row from memory; scaling reads it from the cache. */
#include "words.h"

DECLARE_PLAN(rmsnorm);
DECLARE_PLAN(add_rmsnorm);
DECLARE_PLAN(layernorm);

enum { SUMS = 4 }; /* side by side: an addition takes several cycles */

struct row {
    char *y, *residual; /* residual: of add_rmsnorm; otherwise NULL */
    const char *x, *weight;
    int64_t cols;
    float eps;
};

INLINE float total(const vf sum[SUMS])
{
    return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The sum of (unit * x)^2. */
INLINE float squares(int type, const void *x, int64_t cols, float unit)
{
    const vf u = vf_set(unit);
    vf sum[SUMS] = { vf_set(0), vf_set(0), vf_set(0), vf_set(0) };
    int64_t i = 0;
    for (; i + SUMS * LANES <= cols; i += SUMS * LANES)
        for (int k = 0; k < SUMS; k++) {
            const vf v = u * vf_load_as(type, x, i + k * LANES);
            sum[k] = vf_fma(v, v, sum[k]);
        }
    for (; i < cols; i += LANES) {
        const vf v = u * vf_load_part_as(type, x, i, cols - i < LANES ? cols - i : LANES);
        sum[0] = vf_fma(v, v, sum[0]);
    }
    return total(sum);
}

/* residual += x, rounded as stored, and the sum of its squares. */
INLINE float add_squares(int type, char *residual, const char *x, int64_t cols)
{
    vf sum[SUMS] = { vf_set(0), vf_set(0), vf_set(0), vf_set(0) };
    int64_t i = 0;
    for (; i + SUMS * LANES <= cols; i += SUMS * LANES)
        for (int k = 0; k < SUMS; k++) {
            const int64_t at = i + k * LANES;
            vf_store_as(type, residual, at,
                        vf_load_as(type, residual, at) + vf_load_as(type, x, at));
            const vf v = vf_load_as(type, residual, at);
            sum[k] = vf_fma(v, v, sum[k]);
        }
    for (; i < cols; i += LANES) {
        const int64_t n = cols - i < LANES ? cols - i : LANES;
        vf_store_part_as(
            type, residual, i,
            vf_load_part_as(type, residual, i, n) + vf_load_part_as(type, x, i, n), n);
        const vf v = vf_load_part_as(type, residual, i, n);
        sum[0] = vf_fma(v, v, sum[0]);
    }
    return total(sum);
}

/* y = unit * x * scale * weight. `weight_type` is 0 if there is no weight. */
INLINE void scale_row(int type, int weight_type, const struct row *r, const void *x,
                      float unit, float scale)
{
    const vf u = vf_set(unit), s = vf_set(scale);
    int64_t i = 0;
    for (; i + LANES <= r->cols; i += LANES) {
        vf v = u * vf_load_as(type, x, i) * s;
        if (weight_type)
            v *= vf_load_as(weight_type, r->weight, i);
        vf_store_as(type, r->y, i, v);
    }
    if (i < r->cols) {
        const int64_t n = r->cols - i;
        vf v = u * vf_load_part_as(type, x, i, n) * s;
        if (weight_type)
            v *= vf_load_part_as(weight_type, r->weight, i, n);
        vf_store_part_as(type, r->y, i, v, n);
    }
}

/* Squares of huge values overflow, and squares of tiny ones vanish. Then the sum is computed again
 * in another unit, and the row is scaled in that unit, because 1/x of the largest x is not a normal
 * number. */
INLINE void norm_row(int type, int weight_type, const struct row *r)
{
    const void *x = r->residual ? r->residual : r->x;
    float unit = 1.0f, sum = r->residual ? add_squares(type, r->residual, r->x, r->cols)
                                         : squares(type, x, r->cols, 1.0f);
    if (!(sum < 1e37f) || sum < 1e-30f) {
        unit = sum < 1.0f ? 0x1p40f : 0x1p-80f;
        sum = squares(type, x, r->cols, unit);
    }
    const float mean = sum / (float)r->cols;
    scale_row(type, weight_type, r, x, unit, 1.0f / sqrtf(mean + r->eps * unit * unit));
}

/* The weight has the same type, or is f32, or is absent. */
static void norm_f32(const struct row *r, int weight_type)
{
    if (weight_type)
        norm_row(HW_F32, HW_F32, r);
    else
        norm_row(HW_F32, 0, r);
}

static void norm_f16(const struct row *r, int weight_type)
{
    if (weight_type == HW_F32)
        norm_row(HW_F16, HW_F32, r);
    else
        norm_row(HW_F16, weight_type ? HW_F16 : 0, r);
}

static void norm_bf16(const struct row *r, int weight_type)
{
    if (weight_type == HW_F32)
        norm_row(HW_BF16, HW_F32, r);
    else
        norm_row(HW_BF16, weight_type ? HW_BF16 : 0, r);
}

static void norm(int type, int weight_type, const struct row *r)
{
    if (type == HW_F32)
        norm_f32(r, weight_type);
    else if (type == HW_F16)
        norm_f16(r, weight_type);
    else
        norm_bf16(r, weight_type);
}

/* ---- the rows of kernels.def ---- */

static void run_rmsnorm(const struct plan *plan, int64_t first, int64_t end,
                        uint32_t thread)
{
    const struct rmsnorm_args *a = &plan->lowered.args.rmsnorm;
    const struct hw_rmsnorm *op = plan->op;
    (void)thread;
    for (int64_t i = first; i < end; i++)
        norm(op->x.dtype, a->has_weight ? op->weight.dtype : 0,
             &(struct row){
                 .y = row_of(plan->pointer[0], &a->y, a->n1, a->n2, i),
                 .x = row_of(plan->pointer[1], &a->x, a->n1, a->n2, i),
                 .weight = (char *)plan->pointer[2] + a->weight_offset,
                 .cols = a->cols,
                 .eps = a->eps,
             });
}

const char *PLAN(rmsnorm)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    plan->run = run_rmsnorm;
    return plan_lowered(plan, row, args);
}

static void run_add_rmsnorm(const struct plan *plan, int64_t first, int64_t end,
                            uint32_t thread)
{
    const struct add_rmsnorm_args *a = &plan->lowered.args.add_rmsnorm;
    const struct hw_add_rmsnorm *op = plan->op;
    (void)thread;
    for (int64_t i = first; i < end; i++)
        norm(op->x.dtype, a->has_weight ? op->weight.dtype : 0,
             &(struct row){
                 .y = row_of(plan->pointer[0], &a->y, a->n1, a->n2, i),
                 .residual = row_of(plan->pointer[1], &a->residual, a->n1, a->n2, i),
                 .x = row_of(plan->pointer[2], &a->x, a->n1, a->n2, i),
                 .weight = (char *)plan->pointer[3] + a->weight_offset,
                 .cols = a->cols,
                 .eps = a->eps,
             });
}

const char *PLAN(add_rmsnorm)(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    plan->run = run_add_rmsnorm;
    return plan_lowered(plan, row, args);
}

/* ---- layernorm ---- */

struct centred_row {
    char *y;
    const char *x, *weight, *bias; /* NULL: none */
    int64_t cols;
    float eps;
};

/* The sums of d and d^2, d = unit * x - mean. */
struct deviations {
    float sum, squares;
};

INLINE struct deviations deviations(int type, const struct centred_row *r, float mean,
                                    float unit)
{
    const vf m = vf_set(mean), u = vf_set(unit);
    vf sum[SUMS] = { vf_set(0), vf_set(0), vf_set(0), vf_set(0) };
    vf square[SUMS] = { vf_set(0), vf_set(0), vf_set(0), vf_set(0) };
    int64_t i = 0;
    for (; i + SUMS * LANES <= r->cols; i += SUMS * LANES)
        for (int k = 0; k < SUMS; k++) {
            const vf d = u * vf_load_as(type, r->x, i + k * LANES) - m;
            sum[k] += d;
            square[k] = vf_fma(d, d, square[k]);
        }
    for (; i < r->cols; i += LANES) {
        const int64_t n = r->cols - i < LANES ? r->cols - i : LANES;
        const vf d = u * vf_load_part_as(type, r->x, i, n) - m;
        const vf some = vf_part(d, n, vf_set(0));
        sum[0] += some;
        square[0] = vf_fma(some, some, square[0]);
    }
    return (struct deviations){ total(sum), total(square) };
}

/* y = (unit * x - mean - rest) * scale * weight + bias. */
struct centring {
    float mean, unit, rest, scale;
};

INLINE vf centred(int weight_type, const struct centred_row *r, const struct centring *c,
                  vf x, int64_t i, int64_t n)
{
    vf v = (vf_set(c->unit) * x - vf_set(c->mean) - vf_set(c->rest)) * vf_set(c->scale);
    if (r->weight)
        v *= n == LANES ? vf_load_as(weight_type, r->weight, i)
                        : vf_load_part_as(weight_type, r->weight, i, n);
    if (r->bias)
        v += n == LANES ? vf_load_as(weight_type, r->bias, i)
                        : vf_load_part_as(weight_type, r->bias, i, n);
    return v;
}

INLINE void centre_row(int type, int weight_type, const struct centred_row *r,
                       const struct centring *c)
{
    int64_t i = 0;
    for (; i + LANES <= r->cols; i += LANES)
        vf_store_as(type, r->y, i,
                    centred(weight_type, r, c, vf_load_as(type, r->x, i), i, LANES));
    if (i < r->cols) {
        const int64_t n = r->cols - i;
        const vf x = vf_load_part_as(type, r->x, i, n);
        vf_store_part_as(type, r->y, i, centred(weight_type, r, c, x, i, n), n);
    }
}

/* The sum of a row gives an estimate of the mean, and the mean deviation from it corrects the
 * estimate. Huge values and tiny deviations are summed again in another unit, as in norm_row(). */
INLINE void layernorm_row(int type, int weight_type, const struct centred_row *r)
{
    struct centring c = { .unit = 1.0f };
    const float cols = (float)r->cols;
    struct deviations s = deviations(type, r, 0.0f, c.unit);
    if (!(s.squares < 1e37f)) {
        c.unit = 0x1p-80f;
        s = deviations(type, r, 0.0f, c.unit);
    }
    c.mean = s.sum / cols;
    s = deviations(type, r, c.mean, c.unit);
    if (s.squares < 1e-30f) {
        c.unit *= 0x1p40f;
        c.mean *= 0x1p40f;
        s = deviations(type, r, c.mean, c.unit);
    }
    c.rest = s.sum / cols;
    /* The rounding error if all elements are equal and eps is negligible beside them. */
    const float squares = s.squares / cols, variance = squares - c.rest * c.rest,
                least = squares * 0x1p-24f;
    c.scale = 1.0f /
              sqrtf((variance < least ? least : variance) + r->eps * c.unit * c.unit);
    centre_row(type, weight_type, r, &c);
}

/* Weight and bias share one type: the type of x, or f32. For f32, the portable kernel is as
 * fast. */
static void layernorm(int type, int weight_type, const struct centred_row *r)
{
    if (type == HW_F16 && weight_type == HW_F32)
        layernorm_row(HW_F16, HW_F32, r);
    else if (type == HW_F16)
        layernorm_row(HW_F16, HW_F16, r);
    else if (weight_type == HW_F32)
        layernorm_row(HW_BF16, HW_F32, r);
    else
        layernorm_row(HW_BF16, HW_BF16, r);
}

static void run_layernorm(const struct plan *plan, int64_t first, int64_t end,
                          uint32_t thread)
{
    const struct layernorm_args *a = &plan->lowered.args.layernorm;
    const struct hw_layernorm *op = plan->op;
    const char *weight = (char *)plan->pointer[2] + a->weight_offset;
    const char *bias = (char *)plan->pointer[3] + a->bias_offset;
    (void)thread;
    for (int64_t i = first; i < end; i++)
        layernorm(op->x.dtype, a->has_weight ? op->weight.dtype : op->bias.dtype,
                  &(struct centred_row){
                      .y = row_of(plan->pointer[0], &a->y, a->n1, a->n2, i),
                      .x = row_of(plan->pointer[1], &a->x, a->n1, a->n2, i),
                      .weight = a->has_weight ? weight : NULL,
                      .bias = a->has_bias ? bias : NULL,
                      .cols = a->cols,
                      .eps = a->eps,
                  });
}

const char *PLAN(layernorm)(struct plan *plan, const struct kernel_row *row,
                            const void *args)
{
    plan->run = run_layernorm;
    return plan_lowered(plan, row, args);
}
