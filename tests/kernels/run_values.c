/* SPDX-License-Identifier: MIT */
/* run_values.c - the base of all kernels: every conversion between storage types, and
 * the functions of the prelude. */
#include "run.h"

#include "../verify/golden.h"
#include "storage.h"

void sweep_exp_f32(float *, const float *, int);
void sweep_log_f32(float *, const float *, int);
void sweep_tanh_f32(float *, const float *, int);
void sweep_expm1_f32(float *, const float *, int);
void sweep_normal_tail_f32(float *, const float *, int);
void round_trip_f16(u16 *, float *, const u16 *, int);
void narrow_f16(u16 *, const float *, int);
void narrow_bf16(u16 *, const float *, int);

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

/* Nearest, ties to even: at, just below and just above the midpoint of every two neighbours. */
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

/* Units in the last place of `want`, as a float; infinitely many for a NaN. */
static double ulps(float got, double want)
{
    int e;
    if (got == (float)want)
        return 0;
    if (isnan(got))
        return INFINITY;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* The worst error of `f` against `truth` over floats with bits first .. end, of both signs if
 * requested. */
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
    const double e = worst_ulps(sweep_exp_f32, exp, 0, 0x42d20000u, 1);
    const double l = worst_ulps(sweep_log_f32, log, 0x00800000u, 0x7f800000u, 0);
    const double t = worst_ulps(sweep_tanh_f32, tanh, 0, 0x7f800000u, 1);
    if (e > 2 || l > 3 || t > 4)
        fail_msg("exp %g, log %g, tanh %g ulp; at most 2, 3, 4", e, l, t);

    const float x[8] = { 0, -INFINITY, INFINITY, 89.5f, NAN, -105, -3e38f, 88.7f };
    float y[8];
    sweep_exp_f32(y, x, 8);
    assert_true(y[0] == 1 && y[1] == 0 && isinf(y[2]) && isinf(y[3]) && isnan(y[4]));
    assert_true(y[5] == 0 && y[6] == 0 && y[7] > 3e38f && !isinf(y[7]));
    sweep_tanh_f32(y, x, 8);
    assert_true(y[0] == 0 && y[1] == -1 && y[2] == 1 && isnan(y[4]));
}

static double normal_tail(double t)
{
    return erfc(t / sqrt(2)) / 2;
}

/* The tail's error grows with its exponent, t^2 / 2. */
static void test_below_one(void **state)
{
    static const float above[] = { 0.0f, 1.0f, 2.0f, 4.0f, 8.0f, 13.0f };
    (void)state;
    const double e = worst_ulps(sweep_expm1_f32, expm1, 0, 0x42b00000u, 1);
    if (e > 4)
        fail_msg("expm1 %g ulp; at most 4", e);
    for (size_t i = 0; i + 1 < COUNT(above); i++) {
        const double limit = 7 + (double)(above[i + 1] * above[i + 1]) / 2,
                     t = worst_ulps(sweep_normal_tail_f32, normal_tail,
                                    bits_of_f32(above[i]), bits_of_f32(above[i + 1]), 0);
        if (t > limit)
            fail_msg("normal_tail %g ulp below %g; at most %g", t, (double)above[i + 1],
                     limit);
    }
    const float x[4] = { 0.0f, 3e38f, INFINITY, NAN };
    float y[4];
    sweep_normal_tail_f32(y, x, 4);
    assert_true(fabsf(y[0] - 0.5f) < 1e-7f && y[1] == 0 && y[2] == 0 && isnan(y[3]));
    const float z[4] = { -0.0f, -3e38f, -INFINITY, NAN };
    sweep_expm1_f32(y, z, 4);
    assert_true(y[0] == 0 && y[1] == -1 && y[2] == -1 && isnan(y[3]));
}

/* Calls fn for each block type. */
static void each_block_type(void (*fn)(int type, const float *x), const float *x)
{
    for (int32_t type = 1; type < HW_DTYPE_END; type++)
        if (hw_dtype_block(type) > 1)
            fn(type, x);
}

/* 256 floats as whole blocks. */
static void store_blocks(u8 *blocks, int type, const float *x)
{
    for (i64 i = 0; i < SUPER; i += hw_dtype_block(type))
        store_block(blocks, type, (const u8 *)x, STORAGE_F32, i);
}

static void compare_with_oracle(int type, const float *x)
{
    u8 got[4 * SUPER], want[4 * SUPER];
    double values[SUPER];
    for (int i = 0; i < SUPER; i++)
        values[i] = (double)x[i];
    store_blocks(got, type, x);
    storage_write(type, want, values, SUPER);
    golden_same_blocks(type, got, want,
                       (size_t)(SUPER / hw_dtype_block(type)) *
                           (size_t)hw_dtype_bytes(type));
}

static void test_quantisers(void **state)
{
    (void)state;
    float x[SUPER];
    for (int n = 0; n < 3000; n++) {
        for (int i = 0; i < SUPER; i++) {
            const double v = random_unit();
            /* every other block is at and near the boundaries between two codes */
            x[i] = n % 2 ? (float)v : (float)(floor(v * 15) / 2 * (n % 4 == 2 ? 1.0 : 0.3));
        }
        for (int run = 0; run < SUPER && n % 2 == 0; run += 32)
            x[run + n / 2 % 32] = n % 8 == 0   ? -127.0f
                                  : n % 8 == 2 ? 8.0f
                                  : n % 8 == 4 ? 63.5f
                                               : -16.0f;
        if (n == 1)
            memset(x, 0, sizeof x);
        each_block_type(compare_with_oracle, x);
    }
}

static void encoded_as_ggml(void *user, int32_t type, const float *x, const u8 *blocks,
                            size_t bytes)
{
    u8 got[4 * SUPER];
    (void)user;
    store_blocks(got, type, x);
    golden_same_blocks(type, got, blocks, bytes);
}

/* In pieces of 32, and one by one, as work-items of a group decode them. */
static void decoded_as_ggml(void *user, int32_t type, const float *x, const u8 *blocks,
                            size_t bytes)
{
    float got[SUPER];
    (void)user;
    (void)bytes;
    for (int i = 0; i < SUPER; i += BLOCK)
        load_piece(got + i, blocks, type, i, BLOCK);
    golden_same_floats(type, got, x);
    for (int i = 0; i < SUPER; i++)
        got[i] = load_any(blocks, type, i);
    golden_same_floats(type, got, x);
    for (int i = 0; i < SUPER; i += BLOCK / 2)
        load_piece(got + i, blocks, type, i, BLOCK / 2);
    golden_same_floats(type, got, x);
}

static void test_golden_blocks(void **state)
{
    (void)state;
    golden_walk(encoded_as_ggml, decoded_as_ggml, NULL);
}

/* The scale of a block so small that 1 / scale is infinite is 0 in f16, so every element decodes to
 * 0: the codes are those of zeros. */
static void test_tiny_blocks(void **state)
{
    static const float sizes[] = { 1e-45f, 1e-40f, 1e-38f, 3e-37f };
    (void)state;
    for (size_t n = 0; n < COUNT(sizes); n++) {
        const float zeros[32] = { 0.0f };
        float x[32];
        u8 got[34], want[34];
        for (int i = 0; i < 32; i++)
            x[i] = i % 2 ? sizes[n] : -sizes[n] / 2;
        store_q8_0(got, x);
        store_q8_0(want, zeros);
        assert_memory_equal(got, want, 34);
        if (sizes[n] > 2e-38f) /* q4_0 has codes for these still */
            continue;
        store_q4_0(got, x);
        store_q4_0(want, zeros);
        assert_memory_equal(got + 2, want + 2, 16); /* the scale may be -0 */
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_f16_round_trip), cmocka_unit_test(test_f16_rounding),
    cmocka_unit_test(test_bf16),           cmocka_unit_test(test_functions),
    cmocka_unit_test(test_quantisers),     cmocka_unit_test(test_golden_blocks),
    cmocka_unit_test(test_tiny_blocks),    cmocka_unit_test(test_below_one),
};
const struct family values_family = { tests, COUNT(tests) };
