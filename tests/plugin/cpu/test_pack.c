/* SPDX-License-Identifier: MIT */
/* test_pack.c - weights of block types and of floats in the CPU plugin, packed and unpacked: every
 * matmul row for them agrees with the portable row, for every type and precision, with up to more
 * rows of a than a tile has. */
#include "weights.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* Kernels process 256 elements of short blocks at once: K has one full step and a partial one. */
enum { SHORT_K = 256 + 5 * RUN };
/* From K = 512 on, the rows for few rows of a accept more of them. In the 512 case, several rows
 * map to the same cache sets. */
static const int64_t floats_k[] = { 525, 512 };
/* Products with more columns than one thread takes at once. */
enum { WIDE = 300 };

static void multiply_id(struct harness *h, const struct hw_matmul_id *op)
{
    if (h->plugin.ops->matmul_id(h->device, h->queue, op))
        fail_msg("%s: %s", h->host.kernel, h->message);
}

/* Rows for few rows of a that use unpacked weights. */
static bool is_unpacked(const char *row)
{
    return strncmp(row, "unpacked", 8) == 0 || strncmp(row, "gemv", 4) == 0;
}

/* The most rows of a that are tested. */
static int64_t most_rows(const char *row)
{
    const bool of_floats_alone = strncmp(row, "gem", 3) == 0;
    return strncmp(row, "unpacked", 8) == 0 ? 8
           : getenv("HW_TEST_QUICK")        ? 15
           : of_floats_alone                ? SOME_M
                                            : 60;
}

/* The fewest rows of a that the row takes: pairs of bf16 are for products that take longer in
 * f32. */
static int64_t fewest_rows(const char *row)
{
    return strncmp(row, "gemv_bf16", 9) == 0 ? 5 : 1;
}

/* Whether the row takes an op. Rows for few rows of a must take at least 48 with floats, and two
 * with q6_K, whose panels take longest to make. */
static bool takes(const struct row *row, const struct hw_matmul *op)
{
    const int64_t sure = hw_dtype_block(op->b.dtype) == 1 ? 48
                         : op->b.dtype == HW_Q6_K         ? 2
                                                          : 0;
    return !is_unpacked(row->name) || op->c.extent[0] <= sure ||
           row->h.plugin.supports(row->h.device, HW_OP_MATMUL, op, NULL, 0, NULL) == HW_OK;
}

/* First with packed weights, then with the original ones. */
static void compare_product(struct row *row, struct hw_matmul op,
                            const struct hw_tensor *packed, const float *expected)
{
    static float got[SOME_M * ROWS];
    const int64_t m = op.c.extent[0];
    const struct hw_tensor b = op.b;
    char what[128];
    for (int times = is_unpacked(row->name); times < 2; times++) {
        memset(got, 0xff, sizeof got);
        op.b = times ? b : *packed;
        op.c.data = got;
        multiply(&row->h, &op);
        snprintf(what, sizeof what, "%s, type %d, %lld rows, %s", row->name, b.dtype,
                 (long long)m, times ? "as it was" : "packed");
        same(got, expected, m * ROWS, another_order, what);
    }
}

/* A row that rounds a to bf16. */
static bool is_paired(const char *row)
{
    return strncmp(row, "gemm_bf16", 9) == 0 || strncmp(row, "gemv_bf16", 9) == 0;
}

/* A row that multiplies f16 by f16. */
static bool is_halved(const char *row)
{
    return strcmp(row, "gemv_fhm") == 0;
}

/* The i-th form of a: floats[i % FLOATS]; some are transposed. */
static int form_of(const char *row, int i)
{
    return is_halved(row) ? 1 : i;
}

/* Whether a row is for these types, and for a transposed a. */
static bool is_for(const char *row, int32_t a, int32_t b, bool turned)
{
    if (is_paired(row))
        return a != HW_F16 && b == HW_BF16 && !turned;
    if (is_halved(row))
        return b == HW_F16; /* so is a: form_of() */
    return !turned || strncmp(row, "gemv", 4) != 0;
}

/* Compares one type with each number of rows. */
static void compare_type(struct row *row, int32_t type, int64_t k)
{
    static const int64_t m[] = { 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 40, 48, 49, 60, 96, 97 };
    static float expected[SOME_M * ROWS];
    const struct hw_tensor b = weights_of(&row->portable, type, k);
    struct hw_tensor packed;
    assert_int_equal(pack(&row->h, &b, &packed),
                     is_unpacked(row->name) ? HW_UNSUPPORTED : HW_OK);
    for (int i = 0; i < (int)(sizeof m / sizeof m[0]); i++) {
        if (m[i] > most_rows(row->name))
            break;
        if (m[i] < fewest_rows(row->name))
            continue;
        const int form = form_of(row->name, i);
        if (!is_for(row->name, floats[form % FLOATS], type, form % 5 == 4))
            continue;
        struct hw_matmul op = product(&row->portable, b, m[i], form);
        op.c = TENSOR(expected, HW_F32, m[i], ROWS);
        if (!takes(row, &op))
            break;
        multiply(&row->portable, &op);
        compare_product(row, op, &packed, expected);
    }
}

static const char *const of_blocks[] = { "blocks", "unpacked", NULL };
static const char *const of_floats[] = { "gemm", "gemv", NULL };
static const char *const of_packed_floats[] = { "gemm", NULL };
static const char *const of_experts[] = { "experts", NULL };

static void compare_blocks(struct row *row)
{
    for (int i = 0; i < TYPES; i++)
        compare_type(row, types[i], hw_dtype_block(types[i]) > RUN ? SOME_K : SHORT_K);
}

static void compare_floats(struct row *row)
{
    for (int i = is_paired(row->name) ? FLOATS - 1 : 0; i < FLOATS; i++)
        for (int k = 0; k < 2; k++)
            compare_type(row, floats[i], floats_k[k]);
}

static void rows_take_their_weights(void **state)
{
    (void)state;
    fill();
    const int compared = each_row(HW_OP_MATMUL, of_blocks, compare_blocks) +
                         each_row(HW_OP_MATMUL, of_floats, compare_floats);
#if defined(__aarch64__)
    assert_true(compared > 0);
#endif
    print_message("%d rows\n", compared);
}

/* Products with packed floats: batches of rows or columns of a; c and bias of any type. */
static const struct form {
    int64_t batches, m;
    bool turned;
    int32_t bias, c;
} forms[] = {
    { 1, 5, false, HW_F16, HW_F16 },   { 1, 70, false, HW_BF16, HW_BF16 },
    { 1, 70, true, HW_F32, HW_F32 },   { 1, 61, true, HW_NONE, HW_F16 },
    { 3, 4, false, HW_BF16, HW_F32 },  { 2, 3, true, HW_F16, HW_BF16 },
    { 2, 35, false, HW_NONE, HW_F32 }, { 1, 1, false, HW_NONE, HW_BF16 },
};

static struct hw_tensor batch_of(void *data, int32_t type, int64_t batches, int64_t rows,
                                 int64_t cols)
{
    return batches == 1 ? TENSOR(data, type, rows, cols)
                        : TENSOR(data, type, batches, rows, cols);
}

/* In f32; the portable row rounds c as the others do. */
static void compute_form(struct harness *h, struct harness *portable, struct hw_tensor b,
                         const struct form *f, float *c)
{
    static unsigned char bias[ROWS * 4], rounded[MOST_M * ROWS * 4];
    const int64_t k = b.extent[1], rows = f->turned ? k : f->m, cols = f->turned ? f->m : k;
    struct hw_matmul op = {
        .a = batch_of(activations, HW_F32, f->batches, rows, cols),
        .b = b,
        .c = batch_of(rounded, f->c, f->batches, f->m, ROWS),
        .transpose_a = f->turned,
        .transpose_b = 1,
    };
    if (f->bias) {
        op.bias = TENSOR(bias, f->bias, ROWS);
        harness_convert(portable, op.bias, TENSOR(plain, HW_F32, ROWS));
    }
    memset(rounded, 0xff, sizeof rounded);
    multiply(h, &op);
    harness_convert(portable, batch_of(c, HW_F32, f->batches, f->m, ROWS), op.c);
}

static void compare_forms(struct row *row)
{
    static float got[MOST_M * ROWS], expected[MOST_M * ROWS];
    for (int type = is_paired(row->name) ? FLOATS - 1 : 0; type < FLOATS; type++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            const struct form *f = &forms[i];
            const double rounding = f->c == HW_F32 ? 0 : f->c == HW_F16 ? 2e-3 : 1e-2;
            const struct hw_tensor b = weights_of(&row->portable, floats[type], 397);
            struct hw_tensor packed;
            fill_exactly(f->batches * f->m, 397, false);
            if (is_paired(row->name) && (f->turned || f->bias == HW_F16 || f->c == HW_F16))
                continue;
            assert_int_equal(pack(&row->h, &b, &packed), HW_OK);
            compute_form(&row->portable, &row->portable, b, f, expected);
            compute_form(&row->h, &row->portable, packed, f, got);
            same(got, expected, f->batches * f->m * ROWS, another_order + rounding,
                 row->name);
        }
}

static void packed_floats_take_all_forms(void **state)
{
    (void)state;
    fill();
    each_row(HW_OP_MATMUL, of_packed_floats, compare_forms);
}

/* Multiplies a [m,k] of one type by weights. The first row stores its results for MOST_SAME rows of
 * a; later rows must give the same bits, for any number of rows of a. */
enum { MOST_SAME = 48 };
static float kept[TYPES][MOST_SAME * ROWS];
static bool any_kept;

static void multiply_same(struct row *row, struct hw_tensor a, struct hw_tensor b,
                          float *bits)
{
    static float got[MOST_SAME * ROWS];
    const int64_t most = a.extent[0];
    for (; a.extent[0] >= fewest_rows(row->name); a.extent[0] /= 2) {
        const int64_t count = a.extent[0] * ROWS;
        multiply(&row->h, &(struct hw_matmul){ .a = a,
                                               .b = b,
                                               .c = TENSOR(got, HW_F32, a.extent[0], ROWS),
                                               .transpose_b = 1 });
        if (!any_kept && a.extent[0] == most)
            memcpy(bits, got, sizeof got);
        if (memcmp(bits, got, (size_t)count * sizeof(float)) != 0)
            fail_msg("%s has other bits, with %lld rows by type %d", row->name,
                     (long long)a.extent[0], b.dtype);
    }
}

static void blocks_have_these_bits(struct row *row)
{
    for (int i = 0; i < TYPES; i++)
        multiply_same(row, TENSOR(activations, HW_F32, MOST_SAME, SOME_K),
                      weights_of(&row->portable, types[i], SOME_K), kept[i]);
    any_kept = true;
}

static void halves_have_these_bits(struct row *row)
{
    for (int i = 0; i < 2; i++) {
        const int64_t k = floats_k[i];
        const struct hw_tensor a = TENSOR(typed, HW_F16, MOST_SAME, k);
        harness_convert(&row->portable, a, TENSOR(activations, HW_F32, MOST_SAME, k));
        multiply_same(row, a, weights_of(&row->portable, HW_F16, k), kept[i]);
    }
    any_kept = true;
}

/* A row of c has the same bits beside 47 others, 23, and so on. */
static void floats_have_the_same_bits(struct row *row)
{
    for (int i = is_paired(row->name) ? FLOATS - 1 : 0; i < FLOATS; i++)
        for (int k = 0; k < 2; k++) {
            any_kept = false;
            multiply_same(row, TENSOR(activations, HW_F32, MOST_SAME, floats_k[k]),
                          weights_of(&row->portable, floats[i], floats_k[k]), kept[0]);
        }
}

/* Whether the processor certainly has two such rows: the baseline's and an extension's. */
static bool has_two_of_bytes(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return false;
#endif
}

static bool has_two_of_halves(void)
{
#if defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDFHM) != 0;
#else
    return false;
#endif
}

/* Integer sums are exact, and float sums follow the order of the source text. */
static void sets_have_the_same_bits(void **state)
{
    static const char *const bytes[] = { "blocks_int8", NULL };
    static const char *const halves[] = { "gemv_fhm", "gemv_neon", NULL };
    static const char *const few[] = { "gemv_avx", "gemv_bf16", "gemv_neon", NULL };
    (void)state;
    fill();
    any_kept = false;
    const int of_bytes = each_row(HW_OP_MATMUL, bytes, blocks_have_these_bits);
    any_kept = false;
    const int of_halves = each_row(HW_OP_MATMUL, halves, halves_have_these_bits);
    each_row(HW_OP_MATMUL, few, floats_have_the_same_bits);
    assert_true(of_bytes >= 2 || !has_two_of_bytes());
    assert_true(of_halves >= 2 || !has_two_of_halves());
}

/* Types whose codes are only multiplied by a scale, and the scale's offset in a block. */
static const struct scaled {
    int32_t type, at;
} scaled[] = { { HW_Q8_0, 0 }, { HW_Q4_0, 0 }, { HW_Q5_0, 0 }, { HW_Q6_K, 208 } };

/* Row 5 of b has an infinite scale. All its codes have one sign, and none stands for 0. */
static struct hw_tensor infinite_weights(struct harness *h, const struct scaled *s)
{
    static const uint16_t infinity = 0x7c00;
    const struct hw_tensor b = weights_of(h, s->type, SOME_K);
    for (int64_t k = 0; k < SOME_K; k += hw_dtype_block(s->type))
        memcpy(blocks + 5 * b.stride[0] +
                   k / hw_dtype_block(s->type) * hw_dtype_bytes(s->type) + s->at,
               &infinity, sizeof infinity);
    return b;
}

static void compare_infinite(struct row *row, const struct scaled *s, int64_t m)
{
    static float got[SOME_M * ROWS], expected[SOME_M * ROWS];
    const struct hw_tensor b = infinite_weights(&row->portable, s);
    struct hw_matmul op = { .a = TENSOR(activations, HW_F32, m, SOME_K),
                            .b = b,
                            .c = TENSOR(expected, HW_F32, m, ROWS),
                            .transpose_b = 1 };
    struct hw_tensor packed;
    if (!takes(row, &op))
        return;
    multiply(&row->portable, &op);
    op.c.data = got;
    const bool both = pack(&row->h, &b, &packed) == HW_OK;
    for (int times = 0; times <= both; times++) {
        op.b = times ? packed : b;
        multiply(&row->h, &op);
        for (int64_t i = 0; i < m * ROWS; i++) {
            assert_int_equal(!!isinf(expected[i]), i % ROWS == 5);
            if (i % ROWS == 5 ? got[i] != expected[i] : !isfinite(got[i]))
                fail_msg("%s, type %d, element %lld: %g, the portable row says %g",
                         row->name, s->type, (long long)i, (double)got[i],
                         (double)expected[i]);
        }
    }
}

static void compare_infinities(struct row *row)
{
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
        for (int64_t m = 1; m <= 15 && m <= most_rows(row->name); m = 2 * m + 1)
            compare_infinite(row, &scaled[i], m);
}

static void infinite_scales_give_infinities(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS * SOME_K; i++)
        plain[i] = 0.75f + noise() / 4;
    for (int i = 0; i < SOME_M * SOME_K; i++)
        activations[i] = 0.75f + noise() / 4;
    each_row(HW_OP_MATMUL, of_blocks, compare_infinities);
}

/* a [m,96] . packed b [300,96], on all threads. */
static void multiply_wide(struct harness *h, struct hw_tensor b, int64_t m, float *c)
{
    multiply(h, &(struct hw_matmul){ .a = TENSOR(activations, HW_F32, m, 96),
                                     .b = b,
                                     .c = TENSOR(c, HW_F32, m, WIDE),
                                     .transpose_b = 1 });
}

/* More columns than one thread takes at once. A row of floats gives the same bits alone, with few
 * others and with many. */
static void rows_are_the_same_beside_others(void **state)
{
    static float expected[100 * WIDE], got[100 * WIDE];
    struct harness portable, h;
    (void)state;
    fill();
    open_with(&portable, HW_PRECISION_FP32, "portable");
    open_with(&h, HW_PRECISION_FP32, "");
    for (int i = 0; i < FLOATS; i++) {
        const struct hw_tensor b = TENSOR(blocks, floats[i], WIDE, 96);
        struct hw_tensor packed;
        harness_convert(&portable, b, TENSOR(plain, HW_F32, WIDE, 96));
        if (pack(&h, &b, &packed))
            continue; /* this processor has no such row */
        multiply_wide(&portable, b, 100, expected);
        multiply_wide(&h, packed, 100, got);
        same(got, expected, 100 * WIDE, 2e-5, "many rows of floats");
        memcpy(expected, got, sizeof got);
        for (int64_t m = 1; m < 40; m = 2 * m + 1) {
            memset(got, 0xff, sizeof got);
            multiply_wide(&h, packed, m, got);
            assert_memory_equal(got, expected, (size_t)(m * WIDE) * sizeof(float));
        }
    }
    harness_close(&h);
    harness_close(&portable);
}

/* Experts of matmul_id with 21 rows each, and tokens' choices, some of which do not exist. The
 * choices of a token share a row of a, or have one row each. */
enum { EXPERTS = 3, EXPERT_ROWS = 21, USED = 2, MOST_TOKENS = 30 };

static struct hw_matmul_id choices(struct harness *h, int32_t type, int64_t tokens,
                                   int64_t rows)
{
    static int32_t ids[MOST_TOKENS * USED];
    const int64_t k = hw_dtype_block(type) > 32 ? SOME_K : SHORT_K;
    const struct hw_tensor b = TENSOR(blocks, type, EXPERTS, EXPERT_ROWS, k);
    harness_convert(h, b, TENSOR(plain, HW_F32, EXPERTS, EXPERT_ROWS, k));
    fill_exactly(tokens * rows, k, false);
    for (int i = 0; i < MOST_TOKENS * USED; i++)
        ids[i] = i * 7 % 5 - 1;
    return (struct hw_matmul_id){ .a = TENSOR(activations, HW_F32, tokens, rows, k),
                                  .b = b,
                                  .ids = TENSOR(ids, HW_I32, tokens, USED),
                                  .bias = TENSOR(plain, HW_F32, EXPERTS, EXPERT_ROWS) };
}

static void compare_choices(struct row *row, int32_t type, int64_t rows)
{
    static const int64_t tokens[] = { 1, 2, 7, MOST_TOKENS };
    static float got[MOST_TOKENS * USED * EXPERT_ROWS],
        expected[MOST_TOKENS * USED * EXPERT_ROWS];
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct hw_matmul_id op = choices(&row->portable, type, tokens[i], rows);
        op.c = TENSOR(expected, HW_F32, tokens[i], USED, EXPERT_ROWS);
        multiply_id(&row->portable, &op);
        op.c.data = got;
        memset(got, 0xff, sizeof got);
        multiply_id(&row->h, &op);
        same(got, expected, tokens[i] * USED * EXPERT_ROWS, another_order, row->name);
    }
}

static void compare_experts(struct row *row)
{
    for (int i = 0; i < TYPES; i++) {
        compare_choices(row, types[i], 1);
        compare_choices(row, types[i], USED);
    }
}

static void experts_take_blocks(void **state)
{
    (void)state;
    fill();
    each_row(HW_OP_MATMUL_ID, of_experts, compare_experts);
}

/* One number of one row of a is not finite. */
static void choose_with_nan(struct row *row)
{
    enum { TOKENS = 7, NAN_AT = 5 };
    static float got[TOKENS * USED * EXPERT_ROWS];
    for (int64_t rows = 1; rows <= USED; rows++) {
        struct hw_matmul_id op = choices(&row->portable, HW_Q4_0, TOKENS, rows);
        const int32_t *ids = op.ids.data;
        const int64_t k = op.a.extent[2];
        op.c = TENSOR(got, HW_F32, TOKENS, USED, EXPERT_ROWS);
        activations[NAN_AT * k + 9] = NAN;
        multiply_id(&row->h, &op);
        activations[NAN_AT * k + 9] = 1.0f;
        for (int i = 0; i < TOKENS * USED; i++) {
            const bool chosen = ids[i] >= 0 && ids[i] < EXPERTS;
            const bool wrong = chosen && i * rows / USED == NAN_AT;
            for (int n = 0; n < EXPERT_ROWS; n++)
                assert_int_equal(isnan(got[i * EXPERT_ROWS + n]), wrong);
        }
    }
}

static void nan_stays_with_its_choice(void **state)
{
    (void)state;
    fill();
    each_row(HW_OP_MATMUL_ID, of_experts, choose_with_nan);
}

static void multiply_many(uint32_t threads, int32_t type, float *c)
{
    struct harness h;
    struct hw_tensor packed;
    harness_host(&h, "", threads);
    h.host.precision = HW_PRECISION_INT8;
    harness_start(&h);
    const struct hw_tensor b = weights_of(&h, type, MOST_K);
    if (pack(&h, &b, &packed))
        packed = b;
    const struct hw_matmul op = { .a = TENSOR(activations, HW_F32, MOST_M, MOST_K),
                                  .b = packed,
                                  .c = TENSOR(c, HW_F32, MOST_M, ROWS),
                                  .transpose_b = 1 };
    multiply(&h, &op);
    harness_close(&h);
}

/* Many rows give the results of one row at a time, for any number of threads. 4096 rounding errors
 * amount to 0.09. */
static void many_rows(void **state)
{
    static float got[MOST_M * ROWS], again[MOST_M * ROWS], expected[MOST_M * ROWS];
    struct harness portable;
    (void)state;
    fill();
    for (int i = 0; i < (getenv("HW_TEST_QUICK") ? 1 : TYPES); i += 5) { /* q8_0, q4_K */
        open_with(&portable, HW_PRECISION_FP32, "portable");
        const struct hw_matmul op = {
            .a = TENSOR(activations, HW_F32, MOST_M, MOST_K),
            .b = weights_of(&portable, types[i], MOST_K),
            .c = TENSOR(expected, HW_F32, MOST_M, ROWS),
            .transpose_b = 1,
        };
        multiply(&portable, &op);
        harness_close(&portable);
        multiply_many(1, types[i], got);
        multiply_many(5, types[i], again);
        assert_memory_equal(got, again, sizeof got);
        same(got, expected, MOST_M * ROWS, 0.6, "many rows");
    }
}

/* A non-finite number reaches the results that depend on it, and no others. */
static void nan_stays_in_its_row(void **state)
{
    static float got[3 * ROWS];
    struct harness h;
    struct hw_tensor packed;
    (void)state;
    open_with(&h, HW_PRECISION_INT8, "");
    const struct hw_tensor b = weights_of(&h, HW_Q4_0, 64);
    const bool both = pack(&h, &b, &packed) == HW_OK;
    for (int i = 0; i < 3 * 64; i++)
        activations[i] = noise();
    activations[64 + 9] = NAN;
    for (int times = 0; times <= both; times++) {
        const struct hw_matmul op = { .a = TENSOR(activations, HW_F32, 3, 64),
                                      .b = times ? packed : b,
                                      .c = TENSOR(got, HW_F32, 3, ROWS),
                                      .transpose_b = 1 };
        multiply(&h, &op);
        for (int i = 0; i < 3 * ROWS; i++)
            assert_int_equal(isnan(got[i]), i / ROWS == 1);
    }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_take_their_weights),
        cmocka_unit_test(packed_floats_take_all_forms),
        cmocka_unit_test(sets_have_the_same_bits),
        cmocka_unit_test(infinite_scales_give_infinities),
        cmocka_unit_test(rows_are_the_same_beside_others),
        cmocka_unit_test(experts_take_blocks),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(nan_stays_in_its_row),
        cmocka_unit_test(nan_stays_with_its_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
