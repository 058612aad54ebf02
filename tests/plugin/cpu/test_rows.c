/* SPDX-License-Identifier: MIT */
/* test_rows.c - the rows of the CPU plugin's table: each row that this processor can run agrees
 * with the portable row, on ragged shapes and every storage type; and HW_KERNEL selects rows as
 * documented. The conformance suite compares with the right result; this program compares rows with
 * each other. */
#include "operands.h"

#include "../../fixtures/shortage.h"
#include "../../verify/golden.h"

#include <math.h>
#include <stdbool.h>

static struct operand a, b, c, out;

enum { WEIGHTS = 11 };
static const int32_t weights[WEIGHTS] = { HW_F32,  HW_F16,  HW_BF16, HW_Q8_0,
                                          HW_Q4_0, HW_Q4_1, HW_Q5_0, HW_Q5_1,
                                          HW_Q4_K, HW_Q5_K, HW_Q6_K };

/* The i-th type of weights, for each of three float types, and a row length that fits its
 * blocks. */
static int32_t weight(int i)
{
    return weights[i / 3 % WEIGHTS];
}

static int64_t whole(int64_t n, int32_t dtype)
{
    return hw_dtype_block(dtype) > n ? hw_dtype_block(dtype) : n;
}

/* The i-th call of each op, with floats of type `t`: noise as input, the output at `out`. */
#define CASE(name) static struct hw_##name name##_case(int i, int32_t t)

CASE(matmul)
{
    static const int64_t m[] = { 1, 3, 8, 9, 65, 70 };
    const int64_t rows = m[i / (3 * WEIGHTS)], k = whole(160, weight(i));
    return (struct hw_matmul){
        .a = fill(&a, TENSOR(NULL, t, rows, k), 1),
        .b = fill(&b, TENSOR(NULL, weight(i), 67, k), 2),
        .bias = fill(&c, TENSOR(NULL, t, 67), 3),
        .c = TENSOR(out.bytes, t, rows, 67),
        .transpose_b = 1,
    };
}

CASE(rmsnorm)
{
    return (struct hw_rmsnorm){
        .x = fill(&a, TENSOR(NULL, t, 5, 127), 1),
        .weight = fill(&b, TENSOR(NULL, i < 3 ? t : HW_F32, 127), 2),
        .y = TENSOR(out.bytes, t, 5, 127),
        .eps = 1e-5f,
    };
}

CASE(add_rmsnorm)
{
    return (struct hw_add_rmsnorm){
        .residual = fill(&c, TENSOR(NULL, t, 5, 127), 3),
        .x = fill(&a, TENSOR(NULL, t, 5, 127), 1),
        .weight = fill(&b, TENSOR(NULL, i < 3 ? t : HW_F32, 127), 2),
        .y = TENSOR(out.bytes, t, 5, 127),
        .eps = 1e-5f,
    };
}

CASE(layernorm)
{
    return (struct hw_layernorm){
        .x = fill(&a, TENSOR(NULL, t, 5, 127), 1),
        .weight = fill(&b, TENSOR(NULL, i < 3 ? t : HW_F32, 127), 2),
        .bias = fill(&c, TENSOR(NULL, i < 3 ? t : HW_F32, 127), 3),
        .y = TENSOR(out.bytes, t, 5, 127),
        .eps = 1e-5f,
    };
}

CASE(softmax)
{
    return (struct hw_softmax){
        .x = fill(&a, TENSOR(NULL, t, 2, 5, 129), 1),
        .mask = fill(&b, TENSOR(NULL, weights[i / 3 % 3], 5, 129), 2),
        .y = TENSOR(out.bytes, t, 2, 5, 129),
        .scale = 3.0f,
        .log = i >= 9,
    };
}

CASE(silu)
{
    (void)i;
    return (struct hw_silu){ .x = fill(&a, TENSOR(NULL, t, 7, 1000), 1),
                             .y = TENSOR(out.bytes, t, 7, 1000) };
}

CASE(rope)
{
    return (struct hw_rope){
        .x = fill(&a, TENSOR(NULL, t, 5, 3, 80), 1),
        .y = TENSOR(out.bytes, t, 5, 3, 80),
        .start = 123456,
        .dims = 64,
        .interleaved = i >= 3,
    };
}

CASE(attention)
{
    const int32_t k = weights[i / 3 % 5], v = weights[(i / 3 + i) % 5];
    return (struct hw_attention){
        .q = fill(&a, TENSOR(NULL, t, 9, 6, 96), 1),
        .k = fill(&b, TENSOR(NULL, k, 33, 2, 96), 2),
        .v = fill(&c, TENSOR(NULL, v, 33, 2, 64), 3),
        .y = TENSOR(out.bytes, t, 9, 6, 64),
        .length = 31,
        .causal = 1,
    };
}

/* i / 3: both repeat, b has one value per row, both are one row. */
CASE(add)
{
    if (i < 3)
        return (struct hw_add){ .a = fill(&a, TENSOR(NULL, t, 6, 1, 129), 1),
                                .b = fill(&b, TENSOR(NULL, t, 5, 1), 2),
                                .y = TENSOR(out.bytes, t, 6, 5, 129) };
    return (struct hw_add){ .a = fill(&a, TENSOR(NULL, t, 5, 4100), 1),
                            .b = fill(&b, TENSOR(NULL, t, 5, i < 6 ? 1 : 4100), 2),
                            .y = TENSOR(out.bytes, t, 5, 4100) };
}

CASE(mul)
{
    (void)i;
    return (struct hw_mul){ .a = fill(&a, TENSOR(NULL, t, 5, 129), 1),
                            .b = fill(&b, TENSOR(NULL, t, 129), 2),
                            .y = TENSOR(out.bytes, t, 5, 129) };
}

/* i / 3: operands of one type, of two types, and b repeating. */
CASE(sub)
{
    const int32_t other = i >= 3 ? HW_F16 : t;
    return (struct hw_sub){ .a = fill(&a, TENSOR(NULL, t, 6, 258), 1),
                            .b = i < 6 ? fill(&b, TENSOR(NULL, other, 6, 1), 2)
                                       : fill(&b, TENSOR(NULL, other, 2, 129), 2),
                            .y = TENSOR(out.bytes, t, 6, 258) };
}

CASE(div)
{
    return (struct hw_div){ .a = fill(&a, TENSOR(NULL, t, 5, i < 3 ? 1 : 129), 1),
                            .b = fill(&b, TENSOR(NULL, t, 5, 129), 2),
                            .y = TENSOR(out.bytes, t, 5, 129) };
}

CASE(scale)
{
    (void)i;
    return (struct hw_scale){ .x = fill(&a, TENSOR(NULL, t, 7, 1000), 1),
                              .y = TENSOR(out.bytes, t, 7, 1000),
                              .scale = -3.0f,
                              .bias = 0.5f };
}

CASE(activation)
{
    const int32_t kind = HW_ACT_RELU + i / 3;
    return (struct hw_activation){ .x = fill(&a, TENSOR(NULL, t, 7, 1000), 1),
                                   .y = TENSOR(out.bytes, t, 7, 1000),
                                   .kind = kind,
                                   .hi = kind == HW_ACT_CLIP ? 0.5f : 0.0f };
}

CASE(glu)
{
    return (struct hw_glu){ .gate = fill(&a, TENSOR(NULL, t, 5, 258), 1),
                            .y = TENSOR(out.bytes, t, 5, 129),
                            .kind = HW_ACT_RELU + i / 3 };
}

CASE(swiglu)
{
    (void)i;
    return (struct hw_swiglu){ .gate = fill(&a, TENSOR(NULL, t, 5, 258), 1),
                               .y = TENSOR(out.bytes, t, 5, 129) };
}

static int32_t row_indices[] = { 3, -1, 0, 99, 6 };

CASE(get_rows)
{
    const int64_t cols = whole(96, weight(i));
    return (struct hw_get_rows){
        .table = fill(&a, TENSOR(NULL, weight(i), 7, cols), 1),
        .rows = TENSOR(row_indices, HW_I32, 5),
        .y = TENSOR(out.bytes, t, 5, cols),
    };
}

CASE(set_rows)
{
    const int64_t cols = whole(96, weight(i));
    return (struct hw_set_rows){
        .x = fill(&a, TENSOR(NULL, t, 5, cols), 1),
        .rows = TENSOR(row_indices, HW_I32, 5),
        .table = fill(&out, TENSOR(NULL, weight(i), 7, cols), 4),
    };
}

/* `t` with its last two axes swapped. */
static struct hw_tensor swapped(struct hw_tensor t)
{
    struct hw_tensor s = t;
    const int i = t.rank - 2, j = t.rank - 1;
    s.extent[i] = t.extent[j];
    s.extent[j] = t.extent[i];
    s.stride[i] = t.stride[j];
    s.stride[j] = t.stride[i];
    return s;
}

/* After the cases of all types: transposed input and output. */
CASE(copy)
{
    const int64_t cols = whole(96, weight(i));
    struct hw_copy op = { .src = fill(&a, TENSOR(NULL, t, 5, cols), 1),
                          .dst = TENSOR(out.bytes, weight(i), 5, cols) };
    if (i >= 3 * WEIGHTS) {
        op.src = fill(&a, TENSOR(NULL, t, 2, 1024, 70), 1);
        op.dst = swapped(TENSOR(out.bytes, t, 2, 70, 1024));
        if (i >= 3 * WEIGHTS + 3) {
            op.src = swapped(op.src);
            op.dst = swapped(op.dst);
        }
    }
    return op;
}

CASE(argmax)
{
    (void)i;
    return (struct hw_argmax){ .x = fill(&a, TENSOR(NULL, t, 5, 1000), 1),
                               .y = TENSOR(out.bytes, HW_I32, 5) };
}

CASE(top_k)
{
    (void)i;
    return (struct hw_top_k){ .x = fill(&a, TENSOR(NULL, t, 5, 1000), 1),
                              .values = TENSOR(b.bytes, t, 5, 40),
                              .indices = TENSOR(out.bytes, HW_I32, 5, 40) };
}

CASE(dot)
{
    return (struct hw_dot){ .a = fill(&a, TENSOR(NULL, t, 5, 1, 333), 1),
                            .b = fill(&b, TENSOR(NULL, weights[i / 3], 7, 333), 2),
                            .y = TENSOR(out.bytes, t, 5, 7) };
}

CASE(conv2d)
{
    return (struct hw_conv2d){
        .x = fill(&a, TENSOR(NULL, t, 2, 6, 13, 33), 1),
        .weight = fill(&b, TENSOR(NULL, weights[i / 3], 70, 3, 3, 2), 2),
        .bias = fill(&c, TENSOR(NULL, t, 70), 3),
        .y = TENSOR(out.bytes, t, 2, 70, 7, 33),
        .stride_h = 2,
        .pad_h = 1,
        .pad_w = 1,
        .dilation_w = 2,
        .groups = 2,
    };
}

static int32_t expert_ids[18] = { 1, 0, 2, -1, 0, 0, 3, 0, 0, 1 };

/* For few rows, and for many. */
CASE(matmul_id)
{
    const bool few = i < 3 * WEIGHTS;
    const int64_t tokens = few ? 2 : 9, experts = few ? 3 : 1, k = whole(96, weight(i));
    return (struct hw_matmul_id){
        .a = fill(&a, TENSOR(NULL, t, tokens, 1, k), 1),
        .b = fill(&b, TENSOR(NULL, weight(i), experts, 67, k), 2),
        .ids = TENSOR(expert_ids, HW_I32, tokens, 2),
        .bias = fill(&c, TENSOR(NULL, t, experts, 67), 3),
        .c = TENSOR(out.bytes, t, tokens, 2, 67),
    };
}

/* X(NAME, name, output, number of cases): enough cases for each type and form. */
#define CASES(X)                                                                           \
    X(MATMUL, matmul, c, 6 * 3 * WEIGHTS)                                                  \
    X(RMSNORM, rmsnorm, y, 6)                                                              \
    X(SOFTMAX, softmax, y, 18)                                                             \
    X(SILU, silu, y, 3)                                                                    \
    X(ROPE, rope, y, 6)                                                                    \
    X(ATTENTION, attention, y, 15)                                                         \
    X(ADD, add, y, 9)                                                                      \
    X(MUL, mul, y, 3)                                                                      \
    X(SWIGLU, swiglu, y, 3)                                                                \
    X(ADD_RMSNORM, add_rmsnorm, y, 6)                                                      \
    X(GET_ROWS, get_rows, y, 3 * WEIGHTS)                                                  \
    X(SET_ROWS, set_rows, table, 3 * WEIGHTS)                                              \
    X(COPY, copy, dst, 3 * WEIGHTS + 6)                                                    \
    X(ARGMAX, argmax, y, 3)                                                                \
    X(MATMUL_ID, matmul_id, c, 2 * 3 * WEIGHTS)                                            \
    X(LAYERNORM, layernorm, y, 6)                                                          \
    X(SUB, sub, y, 9)                                                                      \
    X(DIV, div, y, 6)                                                                      \
    X(SCALE, scale, y, 3)                                                                  \
    X(TOP_K, top_k, indices, 3)                                                            \
    X(DOT, dot, y, 9)                                                                      \
    X(ACTIVATION, activation, y, 30)                                                       \
    X(GLU, glu, y, 27)                                                                     \
    X(CONV2D, conv2d, y, 9)

/* `shortage`: which allocation of a case's call fails, 0: none. `ran_short`: whether one failed. */
static unsigned shortage;
static bool ran_short;

/* Runs the i-th case of an op and returns its output; an absent tensor past the last case. `*taken`
 * is false if the row that `h` is limited to does not take the case. */
static struct hw_tensor run_case(struct harness *h, uint32_t op, int i, bool *taken)
{
    static const int32_t floats[] = { HW_F32, HW_F16, HW_BF16 };
    struct hw_tensor output = { .dtype = HW_NONE };
    int32_t status = HW_OK;
    memset(out.bytes, 0xa5, sizeof out.bytes);
    switch ((enum hw_op)op) {
#define X(NAME, name, field, cases)                                                        \
    case HW_OP_##NAME:                                                                     \
        if (i < (cases)) {                                                                 \
            const struct hw_##name args = name##_case(i, floats[i % 3]);                   \
            shortage_begin(shortage);                                                      \
            status = h->plugin.ops->name(h->device, h->queue, &args);                      \
            ran_short = shortage_end();                                                    \
            output = args.field;                                                           \
        }                                                                                  \
        break;
        CASES(X)
#undef X
    case HW_OP_COUNT:
        break;
    }
    if (status && status != HW_UNSUPPORTED)
        fail_msg("op %u, case %d: %s", (unsigned)op, i, h->message);
    *taken = status == HW_OK;
    return output;
}

/* The error of sums in another order, after rounding to the output's type. */
static double tolerance(int32_t dtype)
{
    switch (dtype) {
    case HW_F32:
        return 2e-5;
    case HW_F16:
        return 4e-3;
    case HW_I32:
        return 0.0;
    default:
        return 3e-2;
    }
}

/* Writes the floats of a case's output to `values` and returns their number: 0 past the last case,
 * -1 if the row does not take the case. */
static int64_t values_of(struct harness *h, uint32_t op, int i, float *values,
                         int32_t *dtype)
{
    bool taken;
    struct hw_tensor y = run_case(h, op, i, &taken);
    if (y.dtype == HW_NONE || !taken)
        return taken ? 0 : -1;
    *dtype = y.dtype;
    const int64_t n = count(&y);
    if (y.dtype == HW_I32) {
        for (int64_t k = 0; k < n; k++)
            values[k] = (float)((const int32_t *)(const void *)out.bytes)[k];
        return n;
    }
    const int64_t extents[] = { y.extent[0], y.extent[1], y.extent[2], y.extent[3], 0 };
    struct hw_tensor to = harness_tensor(values, HW_F32, extents);
    harness_convert(&mover, to, y);
    return n;
}

/* Compares a row with the portable one on every case that the row takes. Returns their number. */
static int compare_rows(uint32_t op, const char *row)
{
    static float expected[BYTES / 4], got[BYTES / 4];
    struct harness reference, other;
    int32_t dtype = 0;
    int compared = 0;

    harness_open(&reference, "portable", 1);
    harness_open(&other, row, 3);
    for (int i = 0;; i++) {
        const int64_t n = values_of(&reference, op, i, expected, &dtype);
        if (n == 0)
            break;
        const int64_t m = values_of(&other, op, i, got, &dtype);
        if (m < 0)
            continue;
        assert_int_equal(m, n);
        for (int64_t k = 0; k < n; k++) {
            const double limit = tolerance(dtype) * (1.0 + fabs((double)expected[k]));
            if (!(fabs((double)got[k] - (double)expected[k]) <= limit))
                fail_msg("%s, case %d, element %lld: %g, the portable row says %g", row, i,
                         (long long)k, (double)got[k], (double)expected[k]);
        }
        compared++;
    }
    assert_true(compared > 0);
    assert_non_null(strstr(other.log, row));
    harness_close(&other);
    harness_close(&reference);
    return compared;
}

static void rows_agree(void **state)
{
    struct harness h;
    int compared = 0;
    (void)state;

    harness_open(&h, "", 1);
    harness_open(&mover, "portable", 1);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t row = 0;; row++) {
            struct hw_kernel_info info = { .size = sizeof info };
            if (h.plugin.kernel_info(h.device, op, row, &info) != HW_OK)
                break;
            if (info.eligible)
                compared += compare_rows(op, info.name);
        }
    harness_close(&mover);
    harness_close(&h);
    assert_true(compared > 150);
}

/* Returns how many cases there are. */
static int repeat_cases(struct harness *h, uint32_t op)
{
    bool taken;
    int cases = 0;
    for (;; cases++) {
        shortage = 0;
        if (run_case(h, op, cases, &taken).dtype == HW_NONE)
            return cases;
        shortage = 1;
        run_case(h, op, cases, &taken);
        shortage = 0;
        if (ran_short)
            fail_msg("op %u, case %d allocates again", (unsigned)op, cases);
    }
}

/* A call like the previous one allocates nothing: its plan and its workspace already exist. */
static void repeated_calls_allocate_nothing(void **state)
{
    (void)state;
    harness_open(&mover, "portable", 1);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct harness h;
        int cases = 0;
        harness_open(&h, "", threads);
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            cases += repeat_cases(&h, op);
        assert_true(cases > 150);
        harness_close(&h);
    }
    harness_close(&mover);
}

/* A row that rejects a call must not add its workspace to that of the row that takes the call. The
 * portable row needs none; the row for few rows of each expert would convert them first. */
static void refusals_leave_nothing(void **state)
{
    enum { TOKENS = 512, USED = 8, EXPERTS = 64, K = 256, N = 32 };
    struct harness h;
    uint64_t scratch = 1;
    (void)state;
    harness_open(&h, "", 2);
    const struct hw_matmul_id op = {
        .a = TENSOR(a.bytes, HW_F32, TOKENS, USED, K),
        .b = TENSOR(b.bytes, HW_Q8_0, EXPERTS, N, K),
        .ids = TENSOR(c.bytes, HW_I32, TOKENS, USED),
        .c = TENSOR(out.bytes, HW_F32, TOKENS, USED, N),
    };
    assert_int_equal(h.plugin.supports(h.device, HW_OP_MATMUL_ID, &op, NULL, 0, &scratch),
                     HW_OK);
    assert_int_equal(scratch, 0);
    harness_close(&h);
}

/* Allocated workspace is counted, also where it is rounded up to huge pages. */
static void workspace_is_counted(void **state)
{
    enum { COLS = 1 << 21, HUGE_PAGE = 2 << 20 };
    struct harness h;
    uint64_t scratch = 0;
    (void)state;
    harness_open(&h, "", 1);
    uint16_t *x = calloc(COLS, sizeof *x);
    assert_non_null(x);
    const struct hw_softmax op = { .x = TENSOR(x, HW_F16, 1, COLS),
                                   .y = TENSOR(x, HW_F16, 1, COLS),
                                   .scale = 1.0f };
    assert_int_equal(h.plugin.supports(h.device, HW_OP_SOFTMAX, &op, NULL, 0, &scratch),
                     HW_OK);
    assert_int_equal(h.plugin.ops->softmax(h.device, h.queue, &op), HW_OK);
    assert_true(h.memory >= (int64_t)scratch);
    if (scratch) /* the portable row needs none */
        assert_int_equal(h.memory % HUGE_PAGE, 0);
    free(x);
    harness_close(&h);
}

/* layernorm of equal elements, so large that eps vanishes: the results are nearly zero, however
 * their mean is rounded. */
static void equal_elements_have_no_deviation(void **state)
{
    static const int32_t types[] = { HW_F32, HW_BF16 };
    static float row[1000];
    (void)state;
    for (int portable = 0; portable < 2; portable++)
        for (int i = 0; i < 400; i++) {
            struct harness h;
            const int32_t type = types[i % 2];
            const int64_t cols = 2 + i * 5 / 2;
            harness_open(&h, portable ? "portable" : "", 1);
            for (int64_t k = 0; k < cols; k++)
                row[k] = ldexpf(1.0f + (float)i / 400, i % 128);
            struct hw_tensor x = TENSOR(a.bytes, type, cols),
                             y = TENSOR(out.bytes, type, cols);
            harness_convert(&h, x, TENSOR(row, HW_F32, cols));
            const struct hw_layernorm op = { .x = x, .y = y, .eps = 1e-5f };
            assert_int_equal(h.plugin.ops->layernorm(h.device, h.queue, &op), HW_OK);
            harness_convert(&h, TENSOR(row, HW_F32, cols), y);
            for (int64_t k = 0; k < cols; k++)
                if (!(fabsf(row[k]) < 0.01f))
                    fail_msg("portable %d, case %d: %g", portable, i, (double)row[k]);
            harness_close(&h);
        }
}

enum { FEW = 5, MANY_COLS = 8192, LONG = 1024 }; /* weights that no cache holds */

/* Checks that a matmul row gives `rows` rows the bits of each row alone. Returns false if it takes
 * none. */
static bool same_as_single(const char *name, float *x, float *w, int64_t rows)
{
    static float all[FEW][MANY_COLS], single[MANY_COLS];
    struct harness h;
    harness_open(&h, name, 2);
    struct hw_matmul op = { .a = TENSOR(x, HW_F32, rows, LONG),
                            .b = TENSOR(w, HW_F32, MANY_COLS, LONG),
                            .c = TENSOR(all, HW_F32, rows, MANY_COLS),
                            .transpose_b = 1 };
    const bool taken = h.plugin.ops->matmul(h.device, h.queue, &op) == HW_OK;
    for (int64_t r = 0; taken && r < rows; r++) {
        op.a = TENSOR(x + r * LONG, HW_F32, 1, LONG);
        op.c = TENSOR(single, HW_F32, 1, MANY_COLS);
        assert_int_equal(h.plugin.ops->matmul(h.device, h.queue, &op), HW_OK);
        assert_memory_equal(all[r], single, sizeof single);
    }
    harness_close(&h);
    return taken;
}

/* Dot products of a few rows, some of which are multiplied in two halves. */
static void halves_have_the_bits_of_single_rows(void **state)
{
    struct hw_kernel_info info = { .size = sizeof info };
    struct harness h;
    uint32_t seed = 1, eligible = 0, taken = 0;
    float *x = malloc(sizeof *x * FEW * LONG), *w = malloc(sizeof *w * MANY_COLS * LONG);
    (void)state;
    assert_true(x && w);
    for (int64_t i = 0; i < FEW * LONG; i++)
        x[i] = harness_noise(&seed);
    for (int64_t i = 0; i < (int64_t)MANY_COLS * LONG; i++)
        w[i] = harness_noise(&seed);
    harness_open(&h, "", 1);
    for (uint32_t i = 0; h.plugin.kernel_info(h.device, HW_OP_MATMUL, i, &info) == HW_OK;
         i++)
        for (int64_t rows = 3; rows <= FEW && info.eligible; rows++)
            if (!strncmp(info.name, "gemv", 4)) {
                eligible++;
                taken += same_as_single(info.name, x, w, rows);
            }
    harness_close(&h);
    assert_true(taken > 0 || eligible == 0);
    free(w);
    free(x);
}

/* ---- blocks: the bits of GGML ---- */

/* Returns false if the row does not convert these types. */
static bool move(struct harness *h, void *to, int32_t to_type, const void *from,
                 int32_t from_type)
{
    struct hw_tensor src = TENSOR((void *)(uintptr_t)from, from_type, GOLDEN_ELEMENTS);
    struct hw_tensor dst = TENSOR(to, to_type, GOLDEN_ELEMENTS);
    const struct hw_copy op = { .src = src, .dst = dst };
    if (h->plugin.supports(h->device, HW_OP_COPY, &op, NULL, 0, NULL) != HW_OK)
        return false;
    harness_convert(h, dst, src);
    return true;
}

/* Number of conversions that a row has done, and the number in the file. */
struct converted {
    struct harness h;
    int encoded, decoded, inputs, outputs;
};

static void encoded_as_ggml(void *user, int32_t dtype, const float *x,
                            const unsigned char *blocks, size_t bytes)
{
    struct converted *row = user;
    row->inputs++;
    if (!move(&row->h, out.bytes, dtype, x, HW_F32))
        return;
    row->encoded++;
    golden_same_blocks(dtype, out.bytes, blocks, bytes);
}

static void decoded_as_ggml(void *user, int32_t dtype, const float *x,
                            const unsigned char *blocks, size_t bytes)
{
    struct converted *row = user;
    float got[GOLDEN_ELEMENTS];
    (void)bytes;
    row->outputs++;
    if (!move(&row->h, got, HW_F32, blocks, dtype))
        return;
    row->decoded++;
    golden_same_floats(dtype, got, x);
}

/* Runs every row of copy, including those that fuse products with sums. Portable rows convert
 * everything, rows for blocks convert all types to floats and floats to q8_0, rows for floats
 * convert no blocks. */
static void blocks_are_those_of_ggml(void **state)
{
    struct harness h;
    (void)state;
    harness_open(&h, "", 1);
    for (uint32_t i = 0;; i++) {
        struct hw_kernel_info info = { .size = sizeof info };
        struct converted row = { .encoded = 0 };
        if (h.plugin.kernel_info(h.device, HW_OP_COPY, i, &info) != HW_OK)
            break;
        if (!info.eligible)
            continue;
        const bool portable = !strcmp(info.name, "copy") ||
                              !strncmp(info.name, "copy_v", 6);
        const bool blocks = !strncmp(info.name, "copy_blocks", 11);
        harness_open(&row.h, info.name, 1);
        golden_walk(encoded_as_ggml, decoded_as_ggml, &row);
        harness_close(&row.h);
        assert_true(row.inputs > 0 && row.outputs > 0);
        assert_int_equal(row.decoded, portable || blocks ? row.outputs : 0);
        assert_int_equal(row.encoded, portable ? row.inputs
                                      : blocks ? row.inputs / (WEIGHTS - 3)
                                               : 0);
    }
    harness_close(&h);
}

static void last_row_is_portable(void **state)
{
    struct harness h;
    (void)state;
    harness_open(&h, "", 1);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        struct hw_kernel_info info = { .size = sizeof info };
        uint32_t n = 0;
        while (h.plugin.kernel_info(h.device, op, n, &info) == HW_OK)
            n++;
        assert_true(n > 0);
        assert_int_equal(info.eligible, 1);
        assert_string_equal(info.needs, "");
    }
    harness_close(&h);
}

/* Whether `row` needs everything that `other` needs. */
static bool needs_all_of(const struct hw_kernel_info *row,
                         const struct hw_kernel_info *other)
{
    char words[sizeof other->needs];
    char *rest = NULL;
    (void)snprintf(words, sizeof words, "%s", other->needs);
    for (char *word = strtok_r(words, " ;", &rest); word;
         word = strtok_r(NULL, " ;", &rest))
        if (!strstr(row->needs, word))
            return false;
    return true;
}

/* A few rows of a are multiplied by unpacked weights: above every row that makes panels of them is
 * one that needs no more. */
static void panels_are_no_first_choice(void **state)
{
    struct hw_kernel_info panels = { .size = sizeof panels };
    struct harness h;
    (void)state;
    harness_open(&h, "", 1);
    for (uint32_t i = 0; h.plugin.kernel_info(h.device, HW_OP_MATMUL, i, &panels) == HW_OK;
         i++) {
        struct hw_kernel_info above = { .size = sizeof above };
        bool found = strncmp(panels.name, "blocks", 6) != 0;
        for (uint32_t j = 0; !found && j < i; j++) {
            assert_int_equal(h.plugin.kernel_info(h.device, HW_OP_MATMUL, j, &above),
                             HW_OK);
            found = !strncmp(above.name, "unpacked", 8) && needs_all_of(&panels, &above);
        }
        if (!found)
            fail_msg("%s: no row for unpacked weights above needs only \"%s\"", panels.name,
                     panels.needs);
    }
    harness_close(&h);
}

/* A name that no op has is rejected, and the message lists the existing names. */
static void unknown_row_is_refused(void **state)
{
    static const char *const wrong[] = { "matmul_v9", "matmul=rmsnorm", "matmul=",
                                         "=matmul",   "nothing=matmul", "matmul,what" };
    struct harness h;
    void *queue;
    (void)state;
    harness_open(&h, "", 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct hw_queue_desc desc = { .size = sizeof desc, .kernel = wrong[i] };
        assert_int_equal(h.plugin.queue_open(h.device, &desc, &queue), HW_INVALID);
        assert_non_null(strstr(h.message, "rmsnorm"));
        assert_non_null(strstr(h.message, "portable"));
    }
    const struct hw_queue_desc desc = { .size = sizeof desc,
                                        .kernel = "matmul=matmul,softmax" };
    assert_int_equal(h.plugin.queue_open(h.device, &desc, &queue), HW_OK);
    h.plugin.queue_close(queue);
    harness_close(&h);
}

static void unsupported_says_why(void **state)
{
    struct harness h;
    char why[128];
    (void)state;
    harness_open(&h, "", 1);
    const struct hw_matmul op = { .a = TENSOR(a.bytes, HW_F32, 1, 256),
                                  .b = TENSOR(b.bytes, HW_I8, 4, 256),
                                  .c = TENSOR(out.bytes, HW_F32, 1, 4),
                                  .transpose_b = 1 };
    assert_int_equal(h.plugin.supports(h.device, HW_OP_MATMUL, &op, why, sizeof why, NULL),
                     HW_UNSUPPORTED);
    assert_non_null(strstr(why, "b"));
    assert_int_equal(h.plugin.ops->matmul(h.device, h.queue, &op), HW_UNSUPPORTED);
    assert_string_equal(h.message, why);
    harness_close(&h);
}

/* A graph gives the results of its ops, also on a queue with other rows: it keeps its own. */
static void graph_replays(void **state)
{
    struct harness h;
    float x[300], y[300];
    uint32_t seed = 1;
    void *graph, *queue;
    (void)state;
    harness_open(&h, "", 2);
    for (int i = 0; i < 300; i++)
        x[i] = harness_noise(&seed);
    const struct hw_add add = { .a = TENSOR(x, HW_F32, 300),
                                .b = TENSOR(x, HW_F32, 300),
                                .y = TENSOR(y, HW_F32, 300) };
    const struct hw_mul mul = { .a = TENSOR(y, HW_F32, 300),
                                .b = TENSOR(x, HW_F32, 300),
                                .y = TENSOR(y, HW_F32, 300) };
    struct hw_node nodes[] = { { HW_OP_ADD, sizeof add, &add },
                               { HW_OP_MUL, sizeof mul, &mul } };
    const struct hw_queue_desc desc = { .size = sizeof desc, .kernel = "portable" };
    assert_int_equal(h.plugin.queue_open(h.device, &desc, &queue), HW_OK);
    assert_int_equal(h.plugin.graph_build(queue, nodes, 2, &graph), HW_OK);
    memset(nodes, 0xff, sizeof nodes); /* the graph keeps what they point to, not them */
    assert_non_null(strstr(h.log, "row add for"));
    assert_non_null(strstr(h.log, "row mul for"));
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(h.plugin.graph_launch(turn ? h.queue : queue, graph), HW_OK);
        for (int i = 0; i < 300; i++)
            assert_true(fabsf(y[i] - 2.0f * x[i] * x[i]) < 1e-6f);
        x[0] += 1.0f;
    }
    h.plugin.graph_destroy(graph);
    h.plugin.queue_close(queue);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(halves_have_the_bits_of_single_rows),
        cmocka_unit_test(blocks_are_those_of_ggml),
        cmocka_unit_test(last_row_is_portable),
        cmocka_unit_test(panels_are_no_first_choice),
        cmocka_unit_test(unknown_row_is_refused),
        cmocka_unit_test(unsupported_says_why),
        cmocka_unit_test(graph_replays),
        cmocka_unit_test(repeated_calls_allocate_nothing),
        cmocka_unit_test(equal_elements_have_no_deviation),
        cmocka_unit_test(refusals_leave_nothing),
        cmocka_unit_test(workspace_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
