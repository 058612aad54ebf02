/* SPDX-License-Identifier: MIT */
/* run_rows.c - the row kernels, each compiled for every pair of storage types, on rows of
 * ragged lengths. */
#include "run.h"

#include <stdbool.h>

/* One pair of storage types with the kernels compiled for it. */
struct variant {
    int x, w;
    const struct portable_kernels *form;
};

static const struct variant variants[] = {
#define VARIANT(act, wgt) { STORAGE_##act, STORAGE_##wgt, &tests_##act##_##wgt },
#include "kernels.def"
};

/* Kernels without a weight are compiled once for each type of activations. */
static bool is_plain(const struct variant *v)
{
    return v->x == v->w;
}

/* kind: 0 plain, 1 huge where that fits, 2 tiny, 3 without a weight. */
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

/* The rows lie one batch apart; y takes the place of x. */
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

enum softmax_kind { PLAIN, MASKED, MASKED_ALIKE, HUGE_SCORES, ALL_MASKED, SOFTMAX_KINDS };

/* Each kind twice, the second time as a logarithm; y takes the place of x. */
static void softmax_case(const struct variant *v, i64 cols, int kind)
{
    const int log_form = kind % 2;
    const enum softmax_kind what = (enum softmax_kind)(kind / 2);
    const i64 rows = 2;
    struct array x = random_array(v->x, rows * cols, what == HUGE_SCORES ? 3e4 : 6);
    struct array mask = random_array(v->w, cols, 3);
    double *want = numbers(rows * cols);
    const struct softmax_args a = { .y = packed(v->x, 1, rows, cols),
                                    .x = packed(v->x, 1, rows, cols),
                                    .n1 = 1,
                                    .n2 = rows,
                                    .cols = cols,
                                    .scale = 0.75f,
                                    .has_mask = what == MASKED || what == MASKED_ALIKE,
                                    .mask_step = what == MASKED,
                                    .log_form = log_form };
    for (i64 i = 0; what == MASKED && i < cols; i += 3)
        put(mask, i, -INFINITY);
    for (i64 i = 0; what == HUGE_SCORES && i < rows * cols; i++)
        put(x, i, 4 * floor(get(x, i) / 4)); /* so that 0.75 x is exact */
    for (i64 i = 0; what == ALL_MASKED && i < rows * cols; i++)
        put(x, i, -INFINITY);
    for (int r = 0; r < rows; r++) {
        double top = -INFINITY, sum = 0, *t = want + r * cols;
        for (i64 i = 0; i < cols; i++) {
            t[i] = 0.75 * get(x, r * cols + i) +
                   (a.has_mask ? get(mask, i * a.mask_step) : 0);
            top = fmax(top, t[i]);
        }
        for (i64 i = 0; i < cols; i++)
            sum += top == -INFINITY ? 0 : exp(t[i] - top);
        for (i64 i = 0; i < cols; i++)
            t[i] = top == -INFINITY ? (log_form ? -INFINITY : 0)
                   : log_form       ? t[i] - top - log(sum)
                                    : exp(t[i] - top) / sum;
    }
    LAUNCH(v->form, softmax, rows, &a, x.at, x.at, a.has_mask ? mask.at : NULL);
    check(log_form ? "log softmax" : "softmax", x, want, 0);
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

/* y [2,3,cols] = a [2,1,cols or 1] op b [1,3,cols or 1]; kind: add or mul, of rows, of rows and
 * numbers, of numbers. */
static void add_and_mul_case(const struct variant *v, i64 cols, int kind)
{
    const int product = kind / 3, b_step = kind % 3 == 0, a_step = kind % 3 != 2;
    const i64 a_cols = a_step ? cols : 1, b_cols = b_step ? cols : 1;
    struct array a = random_array(v->x, 2 * a_cols, 3);
    struct array b = random_array(v->x, 3 * b_cols, 3);
    struct array y = new_array(v->x, 6 * cols);
    double *want = numbers(6 * cols);
    const struct binary_args s = { .y = packed(v->x, 2, 3, cols),
                                   .a.stride[1] = bytes_of(v->x, a_cols),
                                   .b.stride[2] = bytes_of(v->x, b_cols),
                                   .n1 = 2,
                                   .n2 = 3,
                                   .cols = cols,
                                   .b_step = b_step,
                                   .flat = !a_step };
    for (int r = 0; r < 6; r++)
        for (i64 i = 0; i < cols; i++) {
            const double u = get(a, r / 3 * a_cols + i * a_step),
                         w = get(b, r % 3 * b_cols + i * b_step);
            want[r * cols + i] = product ? u * w : u + w;
        }
    const i64 groups = 6 * pieces(cols, ELEMENT_SPAN);
    if (product)
        LAUNCH(v->form, mul, groups, &s, y.at, a.at, b.at);
    else
        LAUNCH(v->form, add, groups, &s, y.at, a.at, b.at);
    check(product ? "mul" : "add", y, want, 0);
}

/* Rows: any numbers, all -inf, all alike, zeros of both signs, infinities with NaN. */
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

/* x [2,3,2,dim]; kind: pairs interleaved or not, positions given or from a start, factors
 * or none. */
static void rope_case(const struct variant *v, int dim, int dims, int kind)
{
    static const int positions[3] = { 1000003, 0, -7 };
    const int interleaved = kind & 1, given = kind >> 1 & 1, factored = kind >> 2 & 1;
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
                                 .frequency = (u64)(scale / 6.283185307179586 * turn),
                                 .ratio = (u64)(pow(theta, -2.0 / dims) * turn),
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
            const double angle = (double)position * scale * pow(theta, -2.0 * pair / dims) /
                                 (factored ? (double)factors[pair] : 1);
            const double u = get(x, h * dim + i);
            want[h * dim + i] = i >= dims
                                    ? u
                                    : u * cos(angle) + (second ? 1 : -1) * sin(angle) *
                                                           get(x, h * dim + other);
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
        for (int kind = 0; kind < 8 && is_plain(&variants[v]); kind++)
            for (size_t i = 0; i < COUNT(sizes); i++) {
                rope_case(&variants[v], sizes[i][0], sizes[i][1], kind);
                release();
            }
}

/* A kernel on rows of every length, and in how many kinds of each; `weighted`: also where
 * the weight's type is another one. */
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
    ROW_TEST(softmax, 2 * SOFTMAX_KINDS, true),
    ROW_TEST(silu_and_swiglu, 1, false),
    ROW_TEST(add_and_mul, 6, false),
    cmocka_unit_test(test_rope),
    ROW_TEST(argmax, 1, false),
};
const struct family rows_family = { tests, COUNT(tests) };
