/* SPDX-License-Identifier: MIT */
/* run_rows.c - the row kernels, each compiled for every pair of storage types, on rows of
 * ragged lengths. */
#include "run.h"

#include <stdbool.h>

/* A pair of storage types with the kernels compiled for it. */
struct variant {
    int x, w;
    const struct portable_kernels *form;
};

static const struct variant variants[] = {
#define VARIANT(act, wgt) { STORAGE_##act, STORAGE_##wgt, &portable_##act##_##wgt##_base },
#include "kernels.def"
};

/* Kernels without a weight are compiled once for each type of activations. */
static bool is_plain(const struct variant *v)
{
    return v->x == v->w;
}

/* kind: 0 plain, 1 huge where the type allows, 2 tiny, 3 without a weight. */
static void rmsnorm_case(const struct variant *v, i64 cols, int kind)
{
    const i64 rows = 3;
    const double size = kind == 1 && v->x != STORAGE_F16 ? 1e18 : kind == 2 ? 1e-6 : 2;
    struct array x = random_array(v->x, rows * cols, size);
    struct array w = random_array(v->w, cols, 1), y = new_array(v->x, rows * cols);
    double *want = numbers(rows * cols);
    const struct rmsnorm_args a = { .y = packed(v->x, 1, rows, cols),
                                    .x = packed(v->x, 1, rows, cols),
                                    .n1 = 1,
                                    .n2 = rows,
                                    .cols = cols,
                                    .eps = kind == 2 ? 1e-12f : 1e-5f,
                                    .has_weight = kind != 3 };
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (i64 i = 0; i < cols; i++)
            sum += get(x, r * cols + i) * get(x, r * cols + i);
        for (i64 i = 0; i < cols; i++)
            want[r * cols + i] = get(x, r * cols + i) /
                                 sqrt(sum / (double)cols + (double)a.eps) *
                                 (a.has_weight ? get(w, i) : 1);
    }
    LAUNCH(v->form, rmsnorm, rows, &a, y.at, x.at, a.has_weight ? w.at : NULL);
    check("rmsnorm", y, want, 0);
}

/* kind: 0 plain, 1 huge where the type allows, 2 a large mean with small deviations, without bias,
 * 3 neither weight nor bias, in place. */
static void layernorm_case(const struct variant *v, i64 cols, int kind)
{
    const i64 rows = 3;
    const double size = kind == 1 && v->x != STORAGE_F16 ? 1e18 : 2;
    struct array x = random_array(v->x, rows * cols, size);
    struct array w = random_array(v->w, cols, 1), b = random_array(v->w, cols, 1);
    struct array y = kind == 3 ? x : new_array(v->x, rows * cols);
    double *want = numbers(rows * cols);
    const struct layernorm_args a = { .y = packed(v->x, 1, rows, cols),
                                      .x = packed(v->x, 1, rows, cols),
                                      .n1 = 1,
                                      .n2 = rows,
                                      .cols = cols,
                                      .eps = 1e-5f,
                                      .has_weight = kind < 3,
                                      .has_bias = kind < 2 };
    for (i64 i = 0; i < rows * cols && kind == 2; i++)
        put(x, i, get(x, i) + (v->x == STORAGE_F32 ? 30000 : 300));
    for (int r = 0; r < rows; r++) {
        double mean = 0, squares = 0;
        for (i64 i = r * cols; i < (r + 1) * cols; i++)
            mean += get(x, i) / (double)cols;
        for (i64 i = r * cols; i < (r + 1) * cols; i++)
            squares += (get(x, i) - mean) * (get(x, i) - mean);
        for (i64 i = 0; i < cols; i++)
            want[r * cols + i] = (get(x, r * cols + i) - mean) /
                                     sqrt(squares / (double)cols + (double)a.eps) *
                                     (a.has_weight ? get(w, i) : 1) +
                                 (a.has_bias ? get(b, i) : 0);
    }
    LAUNCH(v->form, layernorm, rows, &a, y.at, x.at, a.has_weight ? w.at : NULL,
           a.has_bias ? b.at : NULL);
    check("layernorm", y, want, 0);
}

/* The rows are one batch apart; y replaces x. */
static void add_rmsnorm_case(const struct variant *v, i64 cols, int kind)
{
    (void)kind;
    const i64 rows = 2;
    struct array x = random_array(v->x, rows * cols, 2);
    struct array residual = random_array(v->x, rows * cols, 5);
    struct array w = random_array(v->w, cols, 1);
    double *sum = numbers(rows * cols), *want = numbers(rows * cols);
    const struct place place = packed(v->x, rows, 1, cols);
    const struct add_rmsnorm_args a = { .y = place,
                                        .residual = place,
                                        .x = place,
                                        .n1 = rows,
                                        .n2 = 1,
                                        .cols = cols,
                                        .eps = 1e-5f,
                                        .has_weight = 1 };
    for (i64 i = 0; i < rows * cols; i++)
        sum[i] = get(x, i) + get(residual, i);
    LAUNCH(v->form, add_rmsnorm, rows, &a, x.at, residual.at, x.at, w.at);
    for (int r = 0; r < rows; r++) {
        double squares = 0;
        for (i64 i = r * cols; i < (r + 1) * cols; i++)
            squares += get(residual, i) * get(residual, i);
        for (i64 i = 0; i < cols; i++)
            want[r * cols + i] = get(residual, r * cols + i) * get(w, i) /
                                 sqrt(squares / (double)cols + (double)a.eps);
    }
    check("add_rmsnorm residual", residual, sum, 0);
    check("add_rmsnorm", x, want, 0);
}

enum softmax_kind {
    PLAIN,
    MASKED,
    MASKED_ALIKE,
    HUGE_SCORES,
    ALL_MASKED,
    SLOPED,
    WITH_SINK,
    SOFTMAX_KINDS
};

/* The inputs of softmax: each row is a head, and the mask is shared. */
struct softmax_rows {
    i64 cols;
    struct array x, mask;
    double slopes[2], sinks[2];
};

static void softmax_row(const struct softmax_rows *s, const struct softmax_args *a, int row,
                        double *t)
{
    double top = s->sinks[row], sum;
    for (i64 i = 0; i < s->cols; i++) {
        const double mask = a->mask_type ? get(s->mask, i * a->mask_step) : 0;
        t[i] = 0.75 * get(s->x, row * s->cols + i) +
               (mask == -INFINITY ? mask : s->slopes[row] * mask);
        top = fmax(top, t[i]);
    }
    sum = top == -INFINITY ? 0 : exp(s->sinks[row] - top);
    for (i64 i = 0; i < s->cols; i++)
        sum += top == -INFINITY ? 0 : exp(t[i] - top);
    for (i64 i = 0; i < s->cols; i++)
        t[i] = top == -INFINITY ? (a->log_form ? -INFINITY : 0)
               : a->log_form    ? t[i] - top - log(sum)
                                : exp(t[i] - top) / sum;
}

/* Each kind six times: probabilities and logarithms, with three types of masks. y replaces x. */
static void softmax_case(const struct variant *v, i64 cols, int kind)
{
    const enum softmax_kind what = (enum softmax_kind)(kind / 6);
    const int sloped = what == SLOPED, sunk = what == WITH_SINK;
    const int masked = what == MASKED || what == MASKED_ALIKE || sloped;
    const i64 rows = 2;
    struct softmax_rows s = { .cols = cols,
                              .slopes = { 1, 1 },
                              .sinks = { -INFINITY, -INFINITY } };
    const float slopes[2] = { 0.0f, -1.5f }, sinks[2] = { 9.0f, -3.0f };
    s.x = random_array(v->x, rows * cols, what == HUGE_SCORES ? 3e4 : 6);
    s.mask = random_array(STORAGE_F32 + kind % 3, cols, 3);
    double *want = numbers(rows * cols);
    const struct softmax_args a = { .y = packed(v->x, rows, 1, cols),
                                    .x = packed(v->x, rows, 1, cols),
                                    .mask = packed(s.mask.type, 1, 1, cols),
                                    .mask_extents = { { 1, 1, 1 } },
                                    .n1 = rows,
                                    .n2 = 1,
                                    .cols = cols,
                                    .scale = 0.75f,
                                    .mask_type = masked ? s.mask.type : 0,
                                    .mask_step = masked && what != MASKED_ALIKE,
                                    .log_form = kind / 3 % 2,
                                    .has_slopes = sloped,
                                    .has_sinks = sunk };
    for (i64 i = 0; a.mask_step && i < cols; i += 3)
        put(s.mask, i, -INFINITY);
    for (i64 i = 0; what == HUGE_SCORES && i < rows * cols; i++)
        put(s.x, i, 4 * floor(get(s.x, i) / 4)); /* so that 0.75 x is exact */
    for (i64 i = 0; what == ALL_MASKED && i < rows * cols; i++)
        put(s.x, i, -INFINITY);
    for (int r = 0; r < rows; r++) {
        s.slopes[r] = sloped ? (double)slopes[r] : 1;
        s.sinks[r] = sunk ? (double)sinks[r] : -INFINITY;
        softmax_row(&s, &a, r, want + r * cols);
    }
    LAUNCH(v->form, softmax, rows, &a, s.x.at, s.x.at, masked ? s.mask.at : NULL, slopes,
           sinks);
    check(a.log_form ? "log softmax" : "softmax", s.x, want, 0);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

/* silu in place; swiglu of gate and up packed into one operand. */
static void silu_and_swiglu_case(const struct variant *v, i64 cols, int kind)
{
    (void)kind;
    struct array both = random_array(v->x, 2 * cols, 8), y = new_array(v->x, cols);
    struct array x = random_array(v->x, cols, 1);
    double *want = numbers(cols), *gated = numbers(cols);
    const struct silu_args a = { .n1 = 1, .n2 = 1, .cols = cols };
    const struct swiglu_args s = {
        .up.offset = bytes_of(v->x, cols), .n1 = 1, .n2 = 1, .cols = cols
    };
    put(x, 0, -3e38);
    for (i64 i = 0; i < cols; i++) {
        want[i] = silu(get(x, i));
        gated[i] = silu(get(both, i)) * get(both, cols + i);
    }
    if (v->x == STORAGE_F16)
        want[0] = get(x, 0) == -INFINITY ? NAN : want[0];
    LAUNCH(v->form, silu, pieces(cols, ELEMENT_SPAN), &a, x.at, x.at);
    LAUNCH(v->form, swiglu, pieces(cols, ELEMENT_SPAN), &s, y.at, both.at, both.at);
    check("silu", x, want, 0);
    check("swiglu", y, gated, 0);
}

static double combined(int kind, double a, double b)
{
    switch (kind) {
    case BINARY_ADD:
        return a + b;
    case BINARY_MUL:
        return a * b;
    case BINARY_SUB:
        return a - b;
    default:
        return a / b;
    }
}

/* Divisors with magnitudes from 1 to 3. */
static struct array divisors(int type, i64 n)
{
    struct array d = random_array(type, n, 2);
    for (i64 i = 0; i < n; i++)
        put(d, i, get(d, i) < 0 ? get(d, i) - 1 : get(d, i) + 1);
    return d;
}

/* y [2,3,cols] = a [2,1,cols] op b [1,3,cols or 1]; kind: the four ops, with rows and with single
 * numbers as b. */
static void pair_case(const struct variant *v, i64 cols, int kind)
{
    static const enum portable kernels[] = { [BINARY_ADD] = PORTABLE_add,
                                             [BINARY_MUL] = PORTABLE_mul,
                                             [BINARY_SUB] = PORTABLE_sub,
                                             [BINARY_DIV] = PORTABLE_div };
    const int op = kind / 2, b_step = kind % 2;
    const i64 b_cols = b_step ? cols : 1;
    struct array a = random_array(v->x, 2 * cols, 3);
    struct array b = divisors(v->x, 3 * b_cols);
    struct array y = new_array(v->x, 6 * cols);
    double *want = numbers(6 * cols);
    const struct binary_args s = { .y = packed(v->x, 2, 3, cols),
                                   .a.stride[1] = bytes_of(v->x, cols),
                                   .b.stride[2] = bytes_of(v->x, b_cols),
                                   .n1 = 2,
                                   .n2 = 3,
                                   .cols = cols,
                                   .b_step = b_step };
    for (int r = 0; r < 6; r++)
        for (i64 i = 0; i < cols; i++)
            want[r * cols + i] = combined(op, get(a, r / 3 * cols + i),
                                          get(b, r % 3 * b_cols + i * b_step));
    launch(v->form->kernel[kernels[op]], 6 * pieces(cols, ELEMENT_SPAN), &s,
           (const void *const[]){ y.at, a.at, b.at });
    check("a pair of operands", y, want, 0);
}

/* y [3,4,2,cols] = a [1,2,2,cols] op b [3,1,2,b_cols], of any types. */
static void mixed_case(const int type[3], int kind, i64 cols, i64 b_cols)
{
    const i64 count = 24 * cols;
    struct array a = random_array(type[1], 4 * cols, 3), b = divisors(type[2], 6 * b_cols);
    struct array y = new_array(type[0], count);
    double *want = numbers(count);
    struct mixed_binary_args s = {
        .y = packed(type[0], 4, 2, cols),
        .a = packed(type[1], 2, 2, cols),
        .b = packed(type[2], 1, 2, b_cols),
        .a_period = { { 1, 2, 2 }, cols },
        .b_period = { { 3, 1, 2 }, b_cols },
        .n1 = 4,
        .n2 = 2,
        .cols = cols,
        .y_type = type[0],
        .a_type = type[1],
        .b_type = type[2],
        .kind = kind,
    };
    for (i64 i = 0; i < count; i++) {
        const i64 at = i % cols, r = i / cols;
        want[i] = combined(kind, get(a, r % 4 * cols + at),
                           get(b, (r / 8 * 2 + r % 2) * b_cols + at % b_cols));
    }
    LAUNCH(&portable_mixed_base, binary, 24 * pieces(cols, ELEMENT_SPAN), &s, y.at, a.at,
           b.at);
    check("binary", y, want, 0);
    release();
}

static void test_binary(void **state)
{
    static const i64 cols[][2] = { { 1, 1 },   { 5, 1 },  { 33, 33 },
                                   { 66, 33 }, { 96, 3 }, { 64, 32 } };
    static const i64 wide[][2] = { { 5000, 1 }, { 4098, 1366 }, { 8192, 4096 } };
    (void)state;
    for (int types = 0; types < 27; types++) {
        const int type[] = { STORAGE_F32 + types / 9, STORAGE_F32 + types / 3 % 3,
                             STORAGE_F32 + types % 3 };
        for (int kind = BINARY_ADD; kind <= BINARY_DIV; kind++)
            for (size_t i = 0; i < COUNT(cols); i++)
                mixed_case(type, kind, cols[i][0], cols[i][1]);
        for (int i = 0; i < (int)COUNT(wide); i++) /* each op with some types */
            mixed_case(type, BINARY_ADD + (types + i) % 4, wide[i][0], wide[i][1]);
    }
}

/* By the formulas; run_values.c tests the functions themselves. */
static double activated(const struct activation *f, double x)
{
    switch (f->kind) {
    case ACTIVATION_RELU:
        return fmax(x, 0);
    case ACTIVATION_LEAKY_RELU:
        return x < 0 ? (double)f->alpha * x : x;
    case ACTIVATION_ELU:
        return x < 0 ? (double)f->alpha * (exp(x) - 1) : x;
    case ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case ACTIVATION_TANH:
        return tanh(x);
    case ACTIVATION_GELU:
        return x * (1 + erf(x / sqrt(2))) / 2;
    case ACTIVATION_GELU_TANH:
        return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))) / 2;
    case ACTIVATION_GELU_QUICK:
        return x / (1 + exp(-1.702 * x));
    case ACTIVATION_SILU:
        return silu(x);
    default:
        return fmin(fmax(x, (double)f->lo), (double)f->hi);
    }
}

/* activation in place; glu of gate and up in two operands, in place of up. */
static void activation_and_glu_case(const struct variant *v, i64 cols, int kind)
{
    const struct activation f = { ACTIVATION_RELU + kind, 0.75f, -0.5f, 2.0f };
    struct array x = random_array(v->x, cols, 3), gate = random_array(v->x, cols, 3);
    struct array up = random_array(v->x, cols, 2);
    double *want = numbers(cols), *gated = numbers(cols);
    const struct activation_args a = {
        .n1 = 1, .n2 = 1, .cols = cols, .f = f, .type = v->x
    };
    const struct glu_args g = { .n1 = 1, .n2 = 1, .cols = cols, .f = f, .type = v->x };
    for (i64 i = 0; i < cols; i++) {
        want[i] = activated(&f, get(x, i));
        gated[i] = activated(&f, get(gate, i)) * get(up, i);
    }
    LAUNCH(&portable_mixed_base, activation, pieces(cols, ELEMENT_SPAN), &a, x.at, x.at);
    LAUNCH(&portable_mixed_base, glu, pieces(cols, ELEMENT_SPAN), &g, up.at, gate.at,
           up.at);
    check("activation", x, want, 0);
    check("glu", up, gated, 0);
}

/* In place. */
static void scale_case(const struct variant *v, i64 cols, int kind)
{
    struct array x = random_array(v->x, cols, 8);
    double *want = numbers(cols);
    const struct scale_args a = {
        .n1 = 1, .n2 = 1, .cols = cols, .scale = -0.75f, .bias = kind ? 20.0f : 0.0f
    };
    for (i64 i = 0; i < cols; i++)
        want[i] = -0.75 * get(x, i) + (double)a.bias;
    LAUNCH(v->form, scale, pieces(cols, ELEMENT_SPAN), &a, x.at, x.at);
    check("scale", x, want, 0);
}

/* Rows: random numbers, all -inf, all equal, zeros of both signs, infinities with NaN. */
static void argmax_case(const struct variant *v, i64 cols, int kind)
{
    (void)kind;
    enum { ROWS = 6 };
    struct array x = random_array(v->x, ROWS * cols, 3);
    int got[ROWS], want[ROWS];
    const struct argmax_args a = { .y = packed(STORAGE_I32, 1, ROWS, 1),
                                   .x = packed(v->x, 1, ROWS, cols),
                                   .n1 = 1,
                                   .n2 = ROWS,
                                   .cols = cols };
    for (i64 i = 0; i < cols; i++) {
        put(x, 1 * cols + i, -INFINITY);
        put(x, 2 * cols + i, 1.0);
        put(x, 3 * cols + i, i < cols / 2 ? -1.0 : i % 2 ? 0.0 : -0.0);
        put(x, 4 * cols + i, i == cols / 2 || i == cols - 1 ? NAN : INFINITY);
    }
    for (int r = 0; r < ROWS; r++) {
        want[r] = 0;
        for (i64 i = 1; i < cols; i++) {
            const double best = get(x, r * cols + want[r]), u = get(x, r * cols + i);
            if (best == best && (u > best || u != u))
                want[r] = (int)i;
        }
    }
    LAUNCH(v->form, argmax, ROWS, &a, got, x.at);
    assert_memory_equal(got, want, sizeof got);
}

/* Rows with many equal elements, with NaNs, and of a single value. k by kind: 1, 7, all. */
static void top_k_case(const struct variant *v, i64 cols, int kind)
{
    enum { ROWS = 3 };
    const int most = cols < TOP_K_MAX ? (int)cols : TOP_K_MAX;
    const int k = kind == 0 ? 1 : kind == 1 && most > 7 ? 7 : most;
    struct array x = random_array(v->x, ROWS * cols, 3);
    struct array values = new_array(v->x, ROWS * k);
    double *want = numbers(ROWS * k);
    int *got = hold(ROWS * (size_t)k * sizeof *got);
    const struct top_k_args a = { .indices = packed(STORAGE_I32, 1, ROWS, k),
                                  .x = packed(v->x, 1, ROWS, cols),
                                  .values = packed(v->x, 1, ROWS, k),
                                  .n1 = 1,
                                  .n2 = ROWS,
                                  .cols = cols,
                                  .k = k,
                                  .has_values = kind != 1 };
    for (i64 i = 0; i < cols; i++) {
        put(x, i, i % 11 == 10 ? NAN : get(x, i));
        put(x, cols + i, floor(get(x, cols + i)));
        put(x, 2 * cols + i, -INFINITY);
    }
    LAUNCH(v->form, top_k, ROWS, &a, got, x.at, a.has_values ? values.at : NULL);
    for (int r = 0; r < ROWS; r++)
        for (int n = 0; n < k; n++) {
            /* `before` counts the elements that precede this one: larger ones, and equal ones at
             * lower indices. */
            const i64 index = got[r * k + n];
            assert_true(index >= 0 && index < cols);
            const double mine = get(x, r * cols + index);
            int before = 0;
            for (i64 i = 0; i < cols; i++) {
                const double u = get(x, r * cols + i);
                const int equal = u == mine || (u != u && mine != mine);
                before += equal ? i < index : mine == mine && (u != u || u > mine);
            }
            assert_int_equal(before, n);
            want[r * k + n] = mine;
        }
    if (a.has_values)
        check("top_k", values, want, 0);
}

/* a [3,1,cols], b [2,cols]: y [3,2]. */
static void dot_case(const struct variant *v, i64 cols, int kind)
{
    (void)kind;
    struct array a = random_array(v->x, 3 * cols, 2);
    struct array b = random_array(STORAGE_F32, 2 * cols, 2), y = new_array(v->x, 6);
    double *want = numbers(6);
    const struct dot_args s = { .y = packed(v->x, 3, 2, 1),
                                .a.stride[1] = bytes_of(v->x, cols),
                                .b.stride[2] = bytes_of(STORAGE_F32, cols),
                                .n1 = 3,
                                .n2 = 2,
                                .cols = cols,
                                .y_type = v->x,
                                .a_type = v->x,
                                .b_type = STORAGE_F32 };
    for (int r = 0; r < 6; r++)
        for (i64 i = 0; i < cols; i++)
            want[r] += get(a, r / 2 * cols + i) * get(b, r % 2 * cols + i);
    LAUNCH(&portable_mixed_base, dot, 6, &s, y.at, a.at, b.at);
    check("dot", y, want, 1e-5);
}

/* x [2,3,2,dim]; kind: pairs interleaved or not, positions given or from a start, factors
 * or none; YaRN from pair 1 to pair 5, with a magnitude, or neither. */
static void rope_case(const struct variant *v, int dim, int dims, int kind)
{
    static const int positions[3] = { 1000003, 0, -7 };
    const int interleaved = kind & 1, given = kind >> 1 & 1, factored = kind >> 2 & 1,
              ramped = kind >> 3 & 1;
    const i64 n = 2 * 3 * 2 * dim;
    const double scale = 0.25, theta = 500000, turn = 18446744073709551616.0; /* 2^64 */
    struct array x = random_array(v->x, n, 2);
    double *want = numbers(n);
    float *factors = hold((size_t)dims / 2 * sizeof *factors);
    const struct rope_args a = { .y = packed(v->x, 3, 2, dim),
                                 .x = packed(v->x, 3, 2, dim),
                                 .start = 999990,
                                 .tokens = 3,
                                 .heads = 2,
                                 .head_dim = dim,
                                 .dims = dims,
                                 .frequency =
                                     (u64)((ramped ? 1 : scale) / 6.283185307179586 * turn),
                                 .ratio = (u64)(pow(theta, -2.0 / dims) * turn),
                                 .ramp_first = 1,
                                 .ramp_length = 4,
                                 .step = (u64)((1 - scale) / 4 * turn),
                                 .ramped = ramped,
                                 .magnitude = ramped ? 1.5f : 1.0f,
                                 .interleaved = interleaved,
                                 .has_positions = given,
                                 .has_factors = factored };
    for (int i = 0; i < dims / 2; i++)
        factors[i] = (float)(i % 3 == 0 ? 1.0 : i % 3 == 1 ? 3.7 * i : 0.3);
    for (i64 h = 0; h < 12; h++)
        for (int i = 0; i < dim; i++) {
            const int pair = i >= dims ? 0 : interleaved ? i / 2 : i % (dims / 2);
            const int second = interleaved ? i % 2 : i >= dims / 2;
            const int other = interleaved ? i ^ 1 : second ? i - dims / 2 : i + dims / 2;
            const i64 token = h / 2 % 3,
                      position = given ? positions[token] : 999990 + token;
            const double slow = ramped ? fmin(1, fmax(0, (pair - 1) / 4.0)) : 1;
            const double angle = (double)position * (1 + slow * (scale - 1)) *
                                 pow(theta, -2.0 * pair / dims) /
                                 (factored ? (double)factors[pair] : 1);
            const double u = get(x, h * dim + i), size = (double)a.magnitude;
            const double w = get(x, h * dim + (i >= dims ? i : other));
            want[h * dim + i] = i >= dims ? u
                                : second  ? size * (u * cos(angle) + w * sin(angle))
                                          : size * (u * cos(angle) - w * sin(angle));
        }
    LAUNCH(v->form, rope, 6, &a, x.at, x.at, given ? positions : NULL,
           factored ? factors : NULL);
    check("rope", x, want, 0);
}

static void test_rope(void **state)
{
    static const int sizes[][2] = { { 128, 128 }, { 80, 32 }, { 6, 2 }, { 600, 600 } };
    (void)state;
    for (size_t v = 0; v < COUNT(variants); v++)
        for (int kind = 0; kind < 16 && is_plain(&variants[v]); kind++)
            for (size_t i = 0; i < COUNT(sizes); i++) {
                rope_case(&variants[v], sizes[i][0], sizes[i][1], kind);
                release();
            }
}

/* Runs a kernel on rows of every length, in a number of kinds each; `weighted`: also where the
 * weight has another type. */
struct row_kernel {
    void (*run)(const struct variant *v, i64 cols, int kind);
    int kinds;
    bool weighted;
};

static void test_row_kernel(void **state)
{
    static const i64 ragged[] = { 1, 5, 31, 32, 33, 127, 129, 1000, 4097 };
    const struct row_kernel *kernel = *state;
    for (size_t v = 0; v < COUNT(variants); v++)
        for (size_t n = 0;
             n < COUNT(ragged) && (kernel->weighted || is_plain(&variants[v])); n++)
            for (int kind = 0; kind < kernel->kinds; kind++) {
                kernel->run(&variants[v], ragged[n], kind);
                release();
            }
}

#define ROW_TEST(name, kinds, weighted)                                                    \
    {                                                                                      \
        "test_" #name, test_row_kernel, NULL, NULL, &(struct row_kernel)                   \
        {                                                                                  \
            name##_case, kinds, weighted                                                   \
        }                                                                                  \
    }
static const struct CMUnitTest tests[] = {
    ROW_TEST(rmsnorm, 4, true),
    ROW_TEST(add_rmsnorm, 1, true),
    ROW_TEST(layernorm, 4, true),
    ROW_TEST(softmax, 6 * SOFTMAX_KINDS, false),
    ROW_TEST(silu_and_swiglu, 1, false),
    ROW_TEST(scale, 2, false),
    ROW_TEST(pair, 8, false),
    cmocka_unit_test(test_binary),
    ROW_TEST(activation_and_glu, 10, false),
    cmocka_unit_test(test_rope),
    ROW_TEST(argmax, 1, false),
    ROW_TEST(top_k, 3, false),
    ROW_TEST(dot, 1, false),
};
const struct family rows_family = { tests, COUNT(tests) };
