/* SPDX-License-Identifier: MIT */
/* run_values.c - the base of all kernels: every conversion between storage types, and
 * the functions of the prelude. */
#include "run.h"

#include <hw/types.h>

void sweep_exp_f32(float *, const float *, int);
void sweep_log_f32(float *, const float *, int);
void sweep_tanh_f32(float *, const float *, int);
void round_trip_f16(u16 *, float *, const u16 *, int);
void narrow_f16(u16 *, const float *, int);
void narrow_bf16(u16 *, const float *, int);

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

/* The element of a block that is farthest from zero, the first of several. */
static float extreme(const float *x)
{
    float found = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > fabsf(found))
            found = x[i];
    return found;
}

/* As GGML's reference does it, each step rounded. */
static void reference_q8_0(const float *x, u8 *block)
{
    volatile float d = fabsf(extreme(x)) / 127, id = d != 0 ? 1 / d : 0;
    store_f16(block, 0, d);
    for (int i = 0; i < 32; i++) {
        volatile float scaled = x[i] * id;
        block[2 + i] = (u8)(int8_t)roundf(scaled);
    }
}

static void reference_q4_0(const float *x, u8 *block)
{
    volatile float d = extreme(x) / -8, id = d != 0 ? 1 / d : 0;
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

/* The scale of a block so small that 1 / scale is infinite is 0 in f16, so every element
 * decodes to 0: the codes are those of zeros. */
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
    cmocka_unit_test(test_storage_is_dtype), cmocka_unit_test(test_f16_round_trip),
    cmocka_unit_test(test_f16_rounding),     cmocka_unit_test(test_bf16),
    cmocka_unit_test(test_functions),        cmocka_unit_test(test_quantisers),
    cmocka_unit_test(test_tiny_blocks),
};
const struct family values_family = { tests, COUNT(tests) };
