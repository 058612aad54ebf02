/* SPDX-License-Identifier: MIT */
/* The portable kernels, run as plain C on ragged sizes against definitions in double
 * precision, and the conversions and functions under them, swept exhaustively. The
 * conformance suite asks more of whole plugins; this asks whether the kernel text is
 * right, under sanitizers if built so. */
#include <hw/types.h> /* first: the prelude defines X */
/**/
#ifdef IN_GROUPS
#include "group.h"
#else
#include "dialect/c.h"
#endif
/**/
#include "args.h"
/**/
#include "prelude.h"
/**/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
/**/
#include <cmocka.h>

#define VARIANTS(V) V(f32, f32) V(f16, f16) V(f16, f32) V(bf16, bf16) V(bf16, f32)
#define ROW_KERNELS(K, x, w)                                                               \
    K(rmsnorm, x, w, (u8 *, const u8 *, const u8 *, struct rmsnorm_args, int))             \
    K(add_rmsnorm, x, w,                                                                   \
      (u8 *, u8 *, const u8 *, const u8 *, struct add_rmsnorm_args, int))                  \
    K(softmax, x, w, (u8 *, const u8 *, const u8 *, struct softmax_args, int))             \
    K(silu, x, w, (u8 *, const u8 *, struct silu_args, int))                               \
    K(swiglu, x, w, (u8 *, const u8 *, const u8 *, struct swiglu_args, int))               \
    K(add, x, w, (u8 *, const u8 *, const u8 *, struct binary_args, int))                  \
    K(mul, x, w, (u8 *, const u8 *, const u8 *, struct binary_args, int))                  \
    K(rope, x, w, (u8 *, const u8 *, const u8 *, const u8 *, struct rope_args, int))       \
    K(argmax, x, w, (u8 *, const u8 *, struct argmax_args, int))

#define DECLARE(name, x, w, list) void name##_##x##_##w list;
#define DECLARE_ALL(x, w)         ROW_KERNELS(DECLARE, x, w)
VARIANTS(DECLARE_ALL)

void matmul(u8 *, const u8 *, const u8 *, const u8 *, struct matmul_args, int);
void matmul_vec(u8 *, const u8 *, const u8 *, const u8 *, struct matmul_args, int);
void attention(u8 *, const u8 *, const u8 *, const u8 *, const u8 *, const u8 *,
               struct attention_args, int);
void get_rows(u8 *, const u8 *, const u8 *, struct rows_args, int);
void set_rows(u8 *, const u8 *, const u8 *, struct rows_args, int);
void copy(u8 *, const u8 *, struct copy_args, int);

void sweep_exp_f32_f32_f32(float *, const float *, int);
void sweep_log_f32_f32_f32(float *, const float *, int);
void sweep_tanh_f32_f32_f32(float *, const float *, int);
void round_trip_f16(u16 *, float *, const u16 *, int);
void narrow_f16(u16 *, const float *, int);
void narrow_bf16(u16 *, const float *, int);

/* One group: a call, or as many calls at once as the group has work-items. */
#ifdef IN_GROUPS
#define GROUP_OF(call) _Pragma("omp parallel num_threads(GROUP)") call
#else
#define GROUP_OF(call) call
#endif

/* One pair of storage types with the kernels compiled for it. */
struct variant {
    int x, w;
#define FIELD(name, x, w, list) void(*name) list;
    ROW_KERNELS(FIELD, x, w)
};

#define STORAGE_f32               STORAGE_F32
#define STORAGE_f16               STORAGE_F16
#define STORAGE_bf16              STORAGE_BF16
#define POINTER(name, x, w, list) .name = name##_##x##_##w,
#define ROW(x_, w_)                                                                              \
    { .x = STORAGE_##x_, .w = STORAGE_##w_, ROW_KERNELS(POINTER, x_, w_) },
static const struct variant variants[] = { VARIANTS(ROW) };

#define FOR_VARIANTS(v) for (const struct variant *v = variants; v < variants + 5; v++)

/* ---- arrays of any storage type, exactly allocated so that a sanitizer sees every
 * overrun ---- */

struct array {
    int type;
    i64 n;
    u8 *at;
};

static i64 bytes_of(int type, i64 n)
{
    switch (type) {
    case STORAGE_F32:
    case STORAGE_I32:
        return 4 * n;
    case STORAGE_Q8_0:
        return n / 32 * 34;
    case STORAGE_Q4_0:
        return n / 32 * 18;
    case STORAGE_I8:
        return n;
    default:
        return 2 * n;
    }
}

static struct array new_array(int type, i64 n)
{
    struct array a = { type, n, malloc((size_t)bytes_of(type, n) + !n) };
    assert_non_null(a.at);
    memset(a.at, 0xa5, (size_t)bytes_of(type, n));
    return a;
}

/* The definition of f16, by arithmetic: shares nothing with the conversions under test. */
static double half_value(unsigned h)
{
    const unsigned e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY)
                     : e     ? ldexp(1024 + m, (int)e - 25)
                             : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static unsigned half_at(const u8 *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static double get(struct array a, i64 i)
{
    float f;
    const u8 *block;
    switch (a.type) {
    case STORAGE_F32:
        memcpy(&f, a.at + 4 * i, 4);
        return f;
    case STORAGE_F16:
        return half_value(half_at(a.at + 2 * i));
    case STORAGE_BF16:
        return f32_of_bits((u32)half_at(a.at + 2 * i) << 16);
    case STORAGE_Q8_0:
        block = a.at + i / 32 * 34;
        return half_value(half_at(block)) * (int8_t)block[2 + i % 32];
    case STORAGE_Q4_0:
        block = a.at + i / 32 * 18;
        return half_value(half_at(block)) *
               ((i % 32 < 16 ? block[2 + i % 32] & 15 : block[2 + i % 32 - 16] >> 4) - 8);
    }
    fail();
    return 0;
}

static u32 random_state = 1;

/* Uniform in -1 .. 1. */
static double random_unit(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (double)(random_state >> 8) / 8388608.0 - 1.0;
}

static void put(struct array a, i64 i, double v)
{
    switch (a.type) {
    case STORAGE_F32:
        store_f32(a.at, i, (float)v);
        break;
    case STORAGE_F16:
        store_f16(a.at, i, (float)v);
        break;
    case STORAGE_BF16:
        store_bf16(a.at, i, (float)v);
        break;
    default:
        fail();
    }
}

static struct array random_array(int type, i64 n, double size)
{
    struct array a = new_array(type, n);
    if (type == STORAGE_Q8_0 || type == STORAGE_Q4_0) {
        const int block = type == STORAGE_Q8_0 ? 34 : 18;
        for (i64 i = 0; i < bytes_of(type, n); i++)
            a.at[i] = (u8)(int)(random_unit() * 127.0 + 128.0);
        for (i64 i = 0; i < n / 32; i++)
            store_f16(a.at + i * block, 0, (float)(size * random_unit() / 100));
    } else {
        for (i64 i = 0; i < n; i++)
            put(a, i, size * random_unit());
    }
    return a;
}

/* Compares an output with n numbers, by the norm of the difference, and frees both. */
static void check(const char *what, struct array got, double *want, double bound)
{
    static const double storage_bound[] = { 0, 2e-6, 1e-3, 8e-3 };
    double difference = 0, norm = 0;
    bound = fmax(bound, storage_bound[got.type]);
    for (i64 i = 0; i < got.n; i++) {
        const double v = get(got, i);
        if (isfinite(want[i]))
            norm += want[i] * want[i];
        if (v != want[i] && (v == v || want[i] == want[i]))
            difference += (v - want[i]) * (v - want[i]);
    }
    if (!(difference <= bound * bound * norm))
        fail_msg("%s: type %d, n %lld: error %g, bound %g", what, got.type,
                 (long long)got.n, sqrt(difference / norm), bound);
    free(want);
    free(got.at);
}

static double *numbers(i64 n)
{
    double *p = calloc((size_t)n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/* A contiguous operand of rows of `cols`: rows are numbered by the innermost outer
 * extent. */
static struct place rows_of(struct array a, i64 cols)
{
    return (struct place){ .stride = { 0, 0, bytes_of(a.type, cols) } };
}

/* ---- conversions and functions ---- */

static void test_storage_is_dtype(void **state)
{
    (void)state;
    assert_int_equal(STORAGE_F32, HW_F32);
    assert_int_equal(STORAGE_F16, HW_F16);
    assert_int_equal(STORAGE_BF16, HW_BF16);
    assert_int_equal(STORAGE_I8, HW_I8);
    assert_int_equal(STORAGE_I32, HW_I32);
    assert_int_equal(STORAGE_I64, HW_I64);
    assert_int_equal(STORAGE_Q8_0, HW_Q8_0);
    assert_int_equal(STORAGE_Q4_0, HW_Q4_0);
}

static void test_f16_round_trip(void **state)
{
    static u16 all[65536], back[65536];
    static float wide[65536];
    (void)state;
    for (int h = 0; h < 65536; h++)
        all[h] = (u16)h;
    round_trip_f16(back, wide, all, 65536);
    for (unsigned h = 0; h < 65536; h++) {
        const double want = half_value(h);
        if (want != want) {
            assert_true(wide[h] != wide[h] && (back[h] & 0x7fff) > 0x7c00);
        } else {
            assert_true(wide[h] == want && !signbit(wide[h]) == !signbit(want));
            assert_int_equal(back[h], h);
        }
    }
}

/* Nearest, ties to even: on, just below and just above the middle of every two
 * neighbours. */
static void test_f16_rounding(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7c00; h++) {
        const double low = half_value(h), high = h == 0x7bff ? 65536 : half_value(h + 1);
        const float middle = (float)((low + high) / 2);
        const unsigned even = h & 1 ? h + 1 : h;
        const float x[4] = { middle, nextafterf(middle, 0), nextafterf(middle, INFINITY),
                             -middle };
        u16 got[4];
        narrow_f16(got, x, 4);
        assert_int_equal(got[0], even);
        assert_int_equal(got[1], h);
        assert_int_equal(got[2], h + 1);
        assert_int_equal(got[3], even | 0x8000);
    }
    const float x[4] = { INFINITY, 3e38f, 1e-40f, NAN };
    u16 got[4];
    narrow_f16(got, x, 4);
    assert_int_equal(got[0], 0x7c00);
    assert_int_equal(got[1], 0x7c00);
    assert_int_equal(got[2], 0);
    assert_true((got[3] & 0x7fff) > 0x7c00);
}

static void test_bf16(void **state)
{
    static float wide[65536];
    static u16 back[65536];
    (void)state;
    for (u32 h = 0; h < 65536; h++)
        wide[h] = f32_of_bits(h << 16);
    narrow_bf16(back, wide, 65536);
    for (u32 h = 0; h < 65536; h++)
        if (wide[h] != wide[h])
            assert_true((back[h] & 0x7fff) > 0x7f80);
        else
            assert_int_equal(back[h], h);
    const float x[4] = { f32_of_bits(0x3f808000u), f32_of_bits(0x3f818000u),
                         f32_of_bits(0x3f808001u), f32_of_bits(0x7f800001u) };
    narrow_bf16(back, x, 4);
    assert_int_equal(back[0], 0x3f80);
    assert_int_equal(back[1], 0x3f82);
    assert_int_equal(back[2], 0x3f81);
    assert_true((back[3] & 0x7fff) > 0x7f80);
}

/* Units in the last place of `want`, as a float. */
static double ulps(float got, double want)
{
    int e;
    if (got == (float)want)
        return 0;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* The worst error of `f` against `truth` over floats with bits first .. end, both signs
 * if asked. */
static double worst_ulps(void (*f)(float *, const float *, int), double (*truth)(double),
                         u32 first, u32 end, int negative)
{
    enum { MANY = 1000 };
    float x[MANY], y[MANY];
    double worst = 0;
    for (u32 u = first; u < end;) {
        int n = 0;
        for (; n < MANY && u < end; u += 2003, n++)
            x[n] = f32_of_bits(u | (negative && n % 2 ? 0x80000000u : 0));
        f(y, x, n);
        for (int i = 0; i < n; i++)
            worst = fmax(worst, ulps(y[i], truth((double)x[i])));
    }
    return worst;
}

static void test_functions(void **state)
{
    (void)state;
    const double e = worst_ulps(sweep_exp_f32_f32_f32, exp, 0, 0x42d20000u, 1);
    const double l = worst_ulps(sweep_log_f32_f32_f32, log, 0x00800000u, 0x7f800000u, 0);
    const double t = worst_ulps(sweep_tanh_f32_f32_f32, tanh, 0, 0x7f800000u, 1);
    if (e > 2 || l > 3 || t > 4)
        fail_msg("exp %g, log %g, tanh %g ulp; at most 2, 3, 4", e, l, t);

    const float x[8] = { 0, -INFINITY, INFINITY, 89.5f, NAN, -105, -3e38f, 88.7f };
    float y[8];
    sweep_exp_f32_f32_f32(y, x, 8);
    assert_true(y[0] == 1 && y[1] == 0 && isinf(y[2]) && isinf(y[3]) && isnan(y[4]));
    assert_true(y[5] == 0 && y[6] == 0 && y[7] > 3e38f && !isinf(y[7]));
    sweep_tanh_f32_f32_f32(y, x, 8);
    assert_true(y[0] == 0 && y[1] == -1 && y[2] == 1 && isnan(y[4]));
}

/* As GGML's reference does it, each step rounded. */
static void reference_q8_0(const float *x, u8 *block)
{
    float largest = 0;
    for (int i = 0; i < 32; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    volatile float d = largest / 127, id = d != 0 ? 1 / d : 0;
    store_f16(block, 0, d);
    for (int i = 0; i < 32; i++) {
        volatile float scaled = x[i] * id;
        block[2 + i] = (u8)(int8_t)roundf(scaled);
    }
}

static void reference_q4_0(const float *x, u8 *block)
{
    float largest = 0, signed_largest = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > largest) {
            largest = fabsf(x[i]);
            signed_largest = x[i];
        }
    volatile float d = signed_largest / -8, id = d != 0 ? 1 / d : 0;
    store_f16(block, 0, d);
    for (int i = 0; i < 32; i++) {
        volatile float scaled = x[i] * id, shifted = scaled + 8.5f;
        const int q = (int8_t)shifted < 15 ? (int8_t)shifted : 15;
        block[2 + i % 16] = (u8)(i < 16 ? q : block[2 + i % 16] | q << 4);
    }
}

static void test_quantisers(void **state)
{
    (void)state;
    float x[32];
    u8 got[34], want[34];
    for (int n = 0; n < 20000; n++) {
        for (int i = 0; i < 32; i++) {
            const double v = random_unit();
            /* every other block lies on and beside the boundaries between two codes */
            x[i] = n % 2 ? (float)v : (float)(floor(v * 15) / 2 * (n % 4 == 2 ? 1.0 : 0.3));
        }
        if (n % 2 == 0)
            x[n / 2 % 32] = n % 8 == 0   ? -127.0f
                            : n % 8 == 2 ? 8.0f
                            : n % 8 == 4 ? 63.5f
                                         : -4.0f;
        if (n == 1)
            memset(x, 0, sizeof x);
        store_q8_0(got, x);
        reference_q8_0(x, want);
        assert_memory_equal(got, want, 34);
        store_q4_0(got, x);
        reference_q4_0(x, want);
        assert_memory_equal(got, want, 18);
    }
}

/* ---- row kernels ---- */

static const i64 ragged[] = { 1, 5, 31, 32, 33, 127, 129, 1000, 4097 };
#define FOR_RAGGED(n)                                                                      \
    for (const i64 *n##_ = ragged, *n##_end = ragged + 9; n##_ < n##_end; n##_++)

static void test_rmsnorm(void **state)
{
    (void)state;
    FOR_VARIANTS(v) FOR_RAGGED(n)
    {
        const i64 cols = *n_, rows = 3;
        for (int kind = 0; kind < 4; kind++) {
            const double size = kind == 1 && v->x != STORAGE_F16 ? 1e18
                                : kind == 2                      ? 1e-6
                                                                 : 2;
            struct array x = random_array(v->x, rows * cols, size);
            struct array w = random_array(v->w, cols, 1), y = new_array(v->x, rows * cols);
            double *want = numbers(rows * cols);
            const struct rmsnorm_args a = { .y = rows_of(y, cols),
                                            .x = rows_of(x, cols),
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
                GROUP_OF(v->rmsnorm(y.at, x.at, a.has_weight ? w.at : NULL, a, r));
            }
            check("rmsnorm", y, want, 0);
            free(x.at);
            free(w.at);
        }
    }
}

static void test_add_rmsnorm(void **state)
{
    (void)state;
    FOR_VARIANTS(v) FOR_RAGGED(n)
    {
        const i64 cols = *n_, rows = 2;
        struct array x = random_array(v->x, rows * cols, 2);
        struct array residual = random_array(v->x, rows * cols, 5);
        struct array w = random_array(v->w, cols, 1);
        double *sum = numbers(rows * cols), *want = numbers(rows * cols);
        const struct add_rmsnorm_args a = { .y = rows_of(x, cols),
                                            .residual = rows_of(x, cols),
                                            .x = rows_of(x, cols),
                                            .n1 = rows,
                                            .n2 = 1,
                                            .cols = cols,
                                            .eps = 1e-5f,
                                            .has_weight = 1 };
        struct add_rmsnorm_args b = a;
        b.y.stride[1] = b.residual.stride[1] = b.x.stride[1] = bytes_of(v->x, cols);
        for (i64 i = 0; i < rows * cols; i++)
            sum[i] = get(x, i) + get(residual, i);
        for (int r = 0; r < rows; r++) {
            GROUP_OF(v->add_rmsnorm(x.at, residual.at, x.at, w.at, b, r));
            double squares = 0;
            for (i64 i = r * cols; i < (r + 1) * cols; i++)
                squares += get(residual, i) * get(residual, i);
            for (i64 i = 0; i < cols; i++)
                want[r * cols + i] = get(residual, r * cols + i) * get(w, i) /
                                     sqrt(squares / (double)cols + (double)a.eps);
        }
        check("add_rmsnorm residual", residual, sum, 0);
        check("add_rmsnorm", x, want, 0);
        free(w.at);
    }
}

/* kind: 0 plain, 1 masked, 2 mask of one value a row, 3 huge, 4 all -inf. */
static void softmax_case(const struct variant *v, i64 cols, int kind, int log_form)
{
    const i64 rows = 2;
    struct array x = random_array(v->x, rows * cols, kind == 3 ? 3e4 : 6);
    struct array mask = random_array(v->w, cols, 3);
    double *want = numbers(rows * cols);
    const struct softmax_args a = { .y = rows_of(x, cols),
                                    .x = rows_of(x, cols),
                                    .n1 = 1,
                                    .n2 = rows,
                                    .cols = cols,
                                    .scale = 0.75f,
                                    .has_mask = kind == 1 || kind == 2,
                                    .mask_step = kind == 1,
                                    .log_form = log_form };
    for (i64 i = 0; kind == 1 && i < cols; i += 3)
        put(mask, i, -INFINITY);
    for (i64 i = 0; kind == 3 && i < rows * cols; i++)
        put(x, i, 4 * floor(get(x, i) / 4)); /* so that 0.75 x is exact */
    for (i64 i = 0; kind == 4 && i < rows * cols; i++)
        put(x, i, -INFINITY);
    for (int r = 0; r < rows; r++) {
        double top = -INFINITY, sum = 0, *t = want + r * cols;
        for (i64 i = 0; i < cols; i++) {
            t[i] = 0.75 * get(x, r * cols + i) + (kind == 1   ? get(mask, i)
                                                  : kind == 2 ? get(mask, 0)
                                                              : 0);
            top = fmax(top, t[i]);
        }
        for (i64 i = 0; i < cols; i++)
            sum += top == -INFINITY ? 0 : exp(t[i] - top);
        for (i64 i = 0; i < cols; i++)
            t[i] = top == -INFINITY ? (log_form ? -INFINITY : 0)
                   : log_form       ? t[i] - top - log(sum)
                                    : exp(t[i] - top) / sum;
        GROUP_OF(v->softmax(x.at, x.at, a.has_mask ? mask.at : NULL, a, r));
    }
    check(log_form ? "log softmax" : "softmax", x, want, 0);
    free(mask.at);
}

static void test_softmax(void **state)
{
    (void)state;
    FOR_VARIANTS(v) FOR_RAGGED(n) for (int kind = 0; kind < 5; kind++)
    {
        softmax_case(v, *n_, kind, 0);
        softmax_case(v, *n_, kind, 1);
    }
}

static int spans(i64 cols)
{
    return (int)((cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN);
}

static void test_silu_and_swiglu(void **state)
{
    (void)state;
    FOR_VARIANTS(v) FOR_RAGGED(n)
    {
        const i64 cols = *n_;
        struct array both = random_array(v->x, 2 * cols, 8), y = new_array(v->x, cols);
        struct array x = random_array(v->x, cols, 1), z;
        double *want = numbers(cols), *gated = numbers(cols);
        put(x, 0, -3e38);
        for (i64 i = 0; i < cols; i++) {
            want[i] = get(x, i) / (1 + exp(-get(x, i)));
            gated[i] = get(both, i) / (1 + exp(-get(both, i))) * get(both, cols + i);
        }
        if (v->x == STORAGE_F16)
            want[0] = get(x, 0) == -INFINITY ? NAN : want[0];
        z = x;
        const struct silu_args a = { .n1 = 1, .n2 = 1, .cols = cols };
        const struct swiglu_args s = {
            .up.offset = bytes_of(v->x, cols), .n1 = 1, .n2 = 1, .cols = cols
        };
        for (int g = 0; g < spans(cols); g++) {
            GROUP_OF(v->silu(z.at, x.at, a, g));
            GROUP_OF(v->swiglu(y.at, both.at, both.at, s, g));
        }
        check("silu", z, want, 0);
        check("swiglu", y, gated, 0);
        free(both.at);
    }
}

/* y [2,3,cols] = a [2,1,cols] op b [1,3,cols or 1]. */
static void binary_case(const struct variant *v, i64 cols, int b_step, int product)
{
    const i64 b_cols = b_step ? cols : 1;
    struct array a = random_array(v->x, 2 * cols, 3), b = random_array(v->x, 3 * b_cols, 3);
    struct array y = new_array(v->x, 6 * cols);
    double *want = numbers(6 * cols);
    struct binary_args s = { .n1 = 2, .n2 = 3, .cols = cols, .b_step = b_step };
    s.y.stride[1] = bytes_of(v->x, 3 * cols);
    s.y.stride[2] = s.a.stride[1] = bytes_of(v->x, cols);
    s.b.stride[2] = bytes_of(v->x, b_cols);
    for (int r = 0; r < 6; r++)
        for (i64 i = 0; i < cols; i++) {
            const double u = get(a, r / 3 * cols + i),
                         w = get(b, r % 3 * b_cols + i * b_step);
            want[r * cols + i] = product ? u * w : u + w;
        }
    for (int g = 0; g < 6 * spans(cols); g++)
        GROUP_OF((product ? v->mul : v->add)(y.at, a.at, b.at, s, g));
    check(product ? "mul" : "add", y, want, 0);
    free(a.at);
    free(b.at);
}

static void test_add_and_mul(void **state)
{
    (void)state;
    FOR_VARIANTS(v)
    FOR_RAGGED(n)
    for (int kind = 0; kind < 4; kind++)
        binary_case(v, *n_, kind % 2, kind / 2);
}

/* x [2,3,2,dim], positions given or from a start, factors or none. */
static void rope_case(const struct variant *v, int dim, int dims, int kind)
{
    static const int positions[3] = { 1000003, 0, -7 };
    const int interleaved = kind & 1, given = kind >> 1 & 1, factored = kind >> 2 & 1;
    const i64 n = 2 * 3 * 2 * dim;
    struct array x = random_array(v->x, n, 2);
    double *want = numbers(n);
    float *factors = malloc((size_t)dims / 2 * sizeof *factors);
    const double scale = 0.25, theta = 500000;
    struct rope_args a = { .start = 999990,
                           .tokens = 3,
                           .heads = 2,
                           .head_dim = dim,
                           .dims = dims,
                           .frequency =
                               (u64)(scale / 6.283185307179586 * 18446744073709551616.0),
                           .ratio = (u64)(pow(theta, -2.0 / dims) * 18446744073709551616.0),
                           .interleaved = interleaved,
                           .has_positions = given,
                           .has_factors = factored };
    a.x.stride[2] = bytes_of(v->x, dim);
    a.x.stride[1] = 2 * a.x.stride[2];
    a.x.stride[0] = 3 * a.x.stride[1];
    a.y = a.x;
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
    for (int g = 0; g < 6; g++)
        GROUP_OF(v->rope(x.at, x.at, given ? (const u8 *)positions : NULL,
                         factored ? (const u8 *)factors : NULL, a, g));
    check("rope", x, want, 0);
    free(factors);
}

static void test_rope(void **state)
{
    (void)state;
    FOR_VARIANTS(v)
    for (int kind = 0; kind < 8; kind++) {
        rope_case(v, 128, 128, kind);
        rope_case(v, 80, 32, kind);
        rope_case(v, 6, 2, kind);
        rope_case(v, 600, 600, kind);
    }
}

static void test_argmax(void **state)
{
    (void)state;
    FOR_VARIANTS(v) FOR_RAGGED(n)
    {
        const i64 cols = *n_, rows = 6;
        struct array x = random_array(v->x, rows * cols, 3);
        int got[6], want[6];
        for (i64 i = 0; i < cols; i++) {
            put(x, 1 * cols + i, -INFINITY);
            put(x, 2 * cols + i, 1.0);
            put(x, 3 * cols + i, i < cols / 2 ? -1.0 : i % 2 ? 0.0 : -0.0);
            put(x, 4 * cols + i, i == cols / 2 || i == cols - 1 ? NAN : INFINITY);
        }
        struct argmax_args a = { .x = rows_of(x, cols), .n1 = 1, .n2 = rows, .cols = cols };
        a.y.stride[2] = 4;
        for (int r = 0; r < rows; r++) {
            want[r] = 0;
            for (i64 i = 1; i < cols; i++) {
                const double best = get(x, r * cols + want[r]), u = get(x, r * cols + i);
                if (best == best && (u > best || u != u))
                    want[r] = (int)i;
            }
            GROUP_OF(v->argmax((u8 *)got, x.at, a, r));
        }
        assert_memory_equal(got, want, sizeof got);
        free(x.at);
    }
}

/* ---- kernels of any mix ---- */

struct shape {
    int m, n, k, transpose_a, transpose_b;
};

/* Two batches that share b; a padded, so that strides are not extents. */
static void matmul_case(struct shape s, int c_type, int a_type, int b_type, int bias_type)
{
    const i64 a_rows = s.transpose_a ? s.k : s.m, a_cols = (s.transpose_a ? s.m : s.k) + 3;
    const i64 b_rows = s.transpose_b ? s.n : s.k, b_cols = s.transpose_b ? s.k : s.n;
    struct array a = random_array(a_type, 2 * a_rows * a_cols, 1);
    struct array b = random_array(b_type, b_rows * b_cols, 1);
    struct array bias = random_array(bias_type ? bias_type : STORAGE_F32, s.n, 1);
    struct array c = new_array(c_type, 2 * s.m * s.n), d = new_array(c_type, 2 * s.m * s.n);
    double *want = numbers(2 * s.m * s.n), *want_vec = numbers(2 * s.m * s.n);
    struct matmul_args p = { .batch1 = 2,
                             .m = s.m,
                             .n = s.n,
                             .k = s.k,
                             .c_type = c_type,
                             .a_type = a_type,
                             .b_type = b_type,
                             .bias_type = bias_type,
                             .transpose_a = s.transpose_a,
                             .transpose_b = s.transpose_b };
    p.a.stride[2] = bytes_of(a_type, a_cols);
    p.a.stride[1] = a_rows * p.a.stride[2];
    p.b.stride[2] = bytes_of(b_type, b_cols);
    p.c.stride[2] = bytes_of(c_type, s.n);
    p.c.stride[1] = s.m * p.c.stride[2];
    for (i64 i = 0; i < 2 * s.m * s.n; i++) {
        const i64 y = i / s.n % s.m, x = i % s.n, at = i / s.n / s.m * a_rows * a_cols;
        double sum = bias_type ? get(bias, x) : 0;
        for (i64 k = 0; k < s.k; k++)
            sum += get(a, at + (s.transpose_a ? k * a_cols + y : y * a_cols + k)) *
                   get(b, s.transpose_b ? x * b_cols + k : k * b_cols + x);
        want[i] = want_vec[i] = sum;
    }
    const u8 *no_bias = bias_type ? bias.at : NULL;
    for (int g = 0; g < 2 * ((s.m + MATMUL_ROWS - 1) / MATMUL_ROWS) *
                            ((s.n + MATMUL_COLS - 1) / MATMUL_COLS);
         g++)
        GROUP_OF(matmul(c.at, a.at, b.at, no_bias, p, g));
    check("matmul", c, want, 1e-5);
    if (s.m <= MATMUL_VEC_ROWS && s.transpose_b && !s.transpose_a) {
        for (int g = 0; g < 2 * ((s.n + MATMUL_VEC_COLS - 1) / MATMUL_VEC_COLS); g++)
            GROUP_OF(matmul_vec(d.at, a.at, b.at, no_bias, p, g));
        check("matmul_vec", d, want_vec, 1e-5);
    } else {
        free(d.at);
        free(want_vec);
    }
    free(a.at);
    free(b.at);
    free(bias.at);
}

static void test_matmul(void **state)
{
    (void)state;
    static const struct shape shapes[] = { { 1, 1, 1, 0, 1 },    { 37, 45, 51, 0, 0 },
                                           { 37, 45, 51, 1, 0 }, { 65, 129, 33, 0, 1 },
                                           { 7, 70, 300, 1, 1 }, { 5, 9, 700, 0, 1 },
                                           { 1, 17, 257, 0, 1 }, { 8, 3, 31, 0, 1 },
                                           { 3, 5, 0, 0, 1 } };
    static const struct shape blocks[] = { { 1, 13, 288, 0, 1 }, { 9, 65, 96, 0, 1 } };
    for (int a = STORAGE_F32; a <= STORAGE_BF16; a++)
        for (int b = STORAGE_F32; b <= STORAGE_BF16; b++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
                matmul_case(shapes[i], 1 + (a + b) % 3, a, b, (a + 2 * b + (int)i) % 4);
    for (int a = STORAGE_F32; a <= STORAGE_BF16; a++)
        for (int b = STORAGE_Q8_0; b <= STORAGE_Q4_0; b++)
            for (size_t i = 0; i < 2; i++)
                matmul_case(blocks[i], STORAGE_F32, a, b, a);
}

struct attention_shape {
    int batches, queries, keys_max, heads, kv_heads, dim, value_dim;
    int q_type, kv_type, bias_type;
    int length, causal, window;
    float softcap;
};

static void attention_case(struct attention_shape s)
{
    const i64 q_n = (i64)s.queries * s.heads, k_n = (i64)s.keys_max * s.kv_heads;
    struct array q = random_array(s.q_type, s.batches * q_n * s.dim, 2);
    struct array k = random_array(s.kv_type, s.batches * k_n * s.dim, 2);
    struct array v = random_array(s.kv_type, s.batches * k_n * s.value_dim, 2);
    struct array y = new_array(s.q_type, s.batches * q_n * s.value_dim);
    struct array bias = random_array(s.bias_type ? s.bias_type : STORAGE_F32,
                                     q_n * s.keys_max, 2);
    double *want = numbers(y.n), *t = numbers(s.keys_max);
    int lengths[3] = { s.length, s.length + 1000, -1 };
    struct attention_args a = { .length = s.length,
                                .keys_max = s.keys_max,
                                .window = s.window,
                                .queries = s.queries,
                                .heads = s.heads,
                                .kv_heads = s.kv_heads,
                                .head_dim = s.dim,
                                .value_dim = s.value_dim,
                                .y_type = s.q_type,
                                .q_type = s.q_type,
                                .k_type = s.kv_type,
                                .v_type = s.kv_type,
                                .bias_type = s.bias_type,
                                .causal = s.causal,
                                .has_lengths = s.batches > 1,
                                .scale = 0.125f,
                                .softcap = s.softcap };
    a.q.stride[2] = bytes_of(s.q_type, s.dim);
    a.q.stride[1] = s.heads * a.q.stride[2];
    a.q.stride[0] = s.queries * a.q.stride[1];
    a.k.stride[2] = bytes_of(s.kv_type, s.dim);
    a.k.stride[1] = s.kv_heads * a.k.stride[2];
    a.k.stride[0] = s.keys_max * a.k.stride[1];
    a.v.stride[2] = bytes_of(s.kv_type, s.value_dim);
    a.v.stride[1] = s.kv_heads * a.v.stride[2];
    a.v.stride[0] = s.keys_max * a.v.stride[1];
    a.y.stride[2] = bytes_of(s.q_type, s.value_dim);
    a.y.stride[1] = s.heads * a.y.stride[2];
    a.y.stride[0] = s.queries * a.y.stride[1];
    a.bias.stride[2] = bytes_of(bias.type, s.keys_max);
    a.bias.stride[1] = s.queries * a.bias.stride[2];
    for (i64 b = 0; b < s.batches; b++)
        for (i64 i = 0; i < s.queries; i++)
            for (i64 h = 0; h < s.heads; h++) {
                int length = s.batches > 1 ? lengths[b] : s.length;
                length = length < 0 ? 0 : length > s.keys_max ? s.keys_max : length;
                const i64 g = h / (s.heads / s.kv_heads),
                          at = (b * s.queries + i) * s.heads + h;
                const i64 position = length - s.queries + i;
                const i64 last = s.causal && position < length - 1 ? position : length - 1;
                double top = -INFINITY, sum = 0;
                for (i64 j = 0; j < length; j++) {
                    double dot = 0;
                    for (int d = 0; d < s.dim; d++)
                        dot += get(q, at * s.dim + d) *
                               get(k, ((b * s.keys_max + j) * s.kv_heads + g) * s.dim + d);
                    dot *= 0.125;
                    if (s.softcap > 0)
                        dot = (double)s.softcap * tanh(dot / (double)s.softcap);
                    if (s.bias_type)
                        dot += get(bias, (h * s.queries + i) * s.keys_max + j);
                    t[j] = (s.causal && j > position) || (s.window && j <= last - s.window)
                               ? -INFINITY
                               : dot;
                    top = fmax(top, t[j]);
                }
                if (top == -INFINITY)
                    continue;
                for (i64 j = 0; j < length; j++)
                    sum += exp(t[j] - top);
                for (int d = 0; d < s.value_dim; d++)
                    for (i64 j = 0; j < length; j++)
                        want[at * s.value_dim + d] +=
                            exp(t[j] - top) / sum *
                            get(v,
                                ((b * s.keys_max + j) * s.kv_heads + g) * s.value_dim + d);
            }
    const int rows = s.queries * s.heads / s.kv_heads;
    for (int g = 0;
         g < s.batches * s.kv_heads * ((rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS); g++)
        GROUP_OF(attention(y.at, q.at, k.at, v.at, s.bias_type ? bias.at : NULL,
                           s.batches > 1 ? (const u8 *)lengths : NULL, a, g));
    check("attention", y, want, 1e-5);
    free(t);
    free(q.at);
    free(k.at);
    free(v.at);
    free(bias.at);
}

static void test_attention(void **state)
{
    (void)state;
    static const struct attention_shape shapes[] = {
        { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0 },
        { 1, 5, 40, 4, 2, 64, 64, 1, 1, 0, 37, 1, 0, 0 },
        { 1, 33, 70, 6, 2, 80, 96, 1, 2, 0, 70, 1, 0, 0 },
        { 1, 1, 300, 8, 1, 128, 128, 2, 2, 0, 277, 1, 0, 0 },
        { 3, 4, 50, 4, 4, 32, 32, 1, 7, 0, 41, 1, 0, 0 },
        { 3, 7, 19, 2, 1, 256, 256, 3, 3, 3, 11, 0, 0, 30 },
        { 1, 9, 60, 4, 2, 48, 16, 1, 3, 1, 60, 1, 17, 0 },
        { 1, 9, 60, 4, 2, 48, 16, 2, 2, 1, 60, 0, 1, 5 },
        { 1, 4, 20, 2, 2, 16, 16, 1, 1, 0, 2, 1, 0, 0 },
        { 1, 2, 20, 2, 2, 16, 16, 1, 1, 0, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        attention_case(shapes[i]);
}

static void test_get_and_set_rows(void **state)
{
    (void)state;
    static const int picked[5] = { 6, 0, -1, 7, 3 };
    for (int from = STORAGE_F32; from <= STORAGE_Q4_0; from++) {
        if (from > STORAGE_BF16 && from < STORAGE_Q8_0)
            continue;
        for (int to = STORAGE_F32; to <= STORAGE_BF16; to++)
            for (i64 cols = from >= STORAGE_Q8_0 ? 96 : 37; cols < 400; cols += 224) {
                struct array table = random_array(from, 7 * cols, 1),
                             y = new_array(to, 5 * cols);
                double *want = numbers(5 * cols);
                const struct rows_args a = { .to = rows_of(y, cols),
                                             .from = rows_of(table, cols),
                                             .table_rows = 7,
                                             .cols = cols,
                                             .to_type = to,
                                             .from_type = from };
                for (int g = 0; g < 5; g++) {
                    for (i64 i = 0; i < cols; i++)
                        want[g * cols + i] = picked[g] < 0 || picked[g] > 6
                                                 ? 0
                                                 : get(table, picked[g] * cols + i);
                    GROUP_OF(get_rows(y.at, table.at, (const u8 *)picked, a, g));
                }
                check("get_rows", y, want, 0);
                free(table.at);
            }
    }
    static const int types[] = { STORAGE_F32, STORAGE_F16, STORAGE_BF16, STORAGE_Q8_0 };
    for (int from = STORAGE_F32; from <= STORAGE_BF16; from++)
        for (int t = 0; t < 4; t++) {
            const int to = types[t];
            const i64 cols = 96;
            struct array x = random_array(from, 5 * cols, 1),
                         table = random_array(to, 7 * cols, 1);
            struct array before = new_array(to, 7 * cols);
            memcpy(before.at, table.at, (size_t)bytes_of(to, 7 * cols));
            const struct rows_args a = { .to = rows_of(table, cols),
                                         .from = rows_of(x, cols),
                                         .table_rows = 7,
                                         .cols = cols,
                                         .to_type = to,
                                         .from_type = from };
            for (int g = 0; g < 5; g++)
                GROUP_OF(set_rows(table.at, x.at, (const u8 *)picked, a, g));
            for (int r = 0; r < 7; r++)
                for (i64 i = 0; i < cols; i++) {
                    const i64 source = r == 6 ? 0 : r == 0 ? 1 : r == 3 ? 4 : -1;
                    if (source < 0)
                        assert_true(get(table, r * cols + i) == get(before, r * cols + i));
                    else if (fabs(get(table, r * cols + i) - get(x, source * cols + i)) >
                             (to == STORAGE_F32 ? 0 : 1.0 / 200))
                        fail_msg("set_rows: %d to %d, row %d", from, to, r);
                }
            free(x.at);
            free(table.at);
            free(before.at);
        }
}

/* A transposed view of floats, then rows of blocks, then bits. */
static void test_copy(void **state)
{
    (void)state;
    for (int from = STORAGE_F32; from <= STORAGE_BF16; from++)
        for (int to = STORAGE_F32; to <= STORAGE_BF16; to++) {
            struct array src = random_array(from, 29 * 41, 1), dst = new_array(to, 41 * 29);
            double *want = numbers(29 * 41);
            struct copy_args a = { .n1 = 1,
                                   .n2 = 41,
                                   .cols = 29,
                                   .dst_step = bytes_of(to, 1),
                                   .src_step = bytes_of(from, 41),
                                   .dst_type = to,
                                   .src_type = from };
            a.dst.stride[2] = bytes_of(to, 29);
            a.src.stride[2] = bytes_of(from, 1);
            for (int g = 0; g < 41; g++) {
                for (int i = 0; i < 29; i++)
                    want[g * 29 + i] = get(src, i * 41 + g);
                GROUP_OF(copy(dst.at, src.at, a, g));
            }
            check("copy", dst, want, 0);
            free(src.at);
        }
    for (int block = STORAGE_Q8_0; block <= STORAGE_Q4_0; block++)
        for (int type = STORAGE_F32; type <= STORAGE_BF16; type++) {
            const i64 cols = 2 * ELEMENT_SPAN + 96;
            struct array x = random_array(type, cols, 1), y = new_array(type, cols);
            struct array q = new_array(block, cols);
            double *want = numbers(cols);
            const struct copy_args to = { .n1 = 1,
                                          .n2 = 1,
                                          .cols = cols,
                                          .dst_type = block,
                                          .src_type = type,
                                          .src_step = bytes_of(type, 1) };
            const struct copy_args back = { .n1 = 1,
                                            .n2 = 1,
                                            .cols = cols,
                                            .dst_type = type,
                                            .src_type = block,
                                            .dst_step = bytes_of(type, 1) };
            for (int g = 0; g < spans(cols); g++)
                GROUP_OF(copy(q.at, x.at, to, g));
            for (int g = 0; g < spans(cols); g++)
                GROUP_OF(copy(y.at, q.at, back, g));
            for (i64 i = 0; i < cols; i++) {
                want[i] = get(q, i);
                if (fabs(get(q, i) - get(x, i)) > (block == STORAGE_Q8_0 ? 0.005 : 0.13))
                    fail_msg("quantising copy: %g became %g", get(x, i), get(q, i));
            }
            check("dequantising copy", y, want, 0);
            free(x.at);
            free(q.at);
        }
    static const int bits[] = { STORAGE_I8, STORAGE_I16, STORAGE_I32, STORAGE_I64 };
    for (int t = 0; t < 4; t++) {
        u8 src[8 * 15], dst[8 * 15], want[8 * 15];
        const int size = 1 << t;
        for (size_t i = 0; i < sizeof src; i++)
            src[i] = (u8)(i * 37 + 255);
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 5; x++)
                memcpy(want + (y * 5 + x) * size, src + (x * 3 + y) * size, (size_t)size);
        struct copy_args a = { .n1 = 1,
                               .n2 = 3,
                               .cols = 5,
                               .dst_step = size,
                               .src_step = 3 * size,
                               .dst_type = bits[t],
                               .src_type = bits[t] };
        a.dst.stride[2] = 5 * size;
        a.src.stride[2] = size;
        for (int g = 0; g < 3; g++)
            GROUP_OF(copy(dst, src, a, g));
        assert_memory_equal(dst, want, (size_t)(15 * size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storage_is_dtype),
        cmocka_unit_test(test_f16_round_trip),
        cmocka_unit_test(test_f16_rounding),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_quantisers),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_add_rmsnorm),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_silu_and_swiglu),
        cmocka_unit_test(test_add_and_mul),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_get_and_set_rows),
        cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
