/* SPDX-License-Identifier: MIT */
/* prelude/math.h - functions of floats: the same text, and therefore the same result, on every
 * device. The first of the three prelude files; it follows the dialect and args.h. */
#ifndef PRELUDE_MATH_H
#define PRELUDE_MATH_H

/* VEC floats that arithmetic treats as one value, if the dialect has such a type. */
#ifndef VEC
#define VEC 1
typedef float vec;
#define load_vec(p)     (*(p))
#define store_vec(p, v) (*(p) = (v))
#define vec_zero        0.0f
#define vec_sum(v)      (v)
#endif

#define NEG_INFINITY f32_of_bits(0xff800000u)

FUNC float abs_f32(float x)
{
    return f32_of_bits(bits_of_f32(x) & 0x7fffffffu);
}

FUNC float max_f32(float a, float b)
{
    return a > b ? a : b;
}

FUNC float sign_from(float size, float x)
{
    return f32_of_bits((bits_of_f32(size) & 0x7fffffffu) | (bits_of_f32(x) & 0x80000000u));
}

/* e^x, within 2 ulp: 2^n e^r with |r| <= ln 2 / 2, a polynomial for e^r, and 2^n applied
 * in two steps so that results may be subnormal. Beyond +-104 the result is 0 or infinite.
 * It has selects instead of branches, so that loops over it vectorise. */
FUNC float exp_f32(float x)
{
    const u32 size = bits_of_f32(x) & 0x7fffffffu;
    const float c = sign_from(f32_of_bits(size < 0x42d00000u ? size : 0x42d00000u), x);
    const float t = c * 1.44269504f;
    const int n = (int)(t + sign_from(0.5f, t));
    const float whole = (float)n;
    const float r = c - whole * 0.693145752f - whole * 1.42860677e-6f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int step = n >> 1;
    const float y = p * f32_of_bits((u32)(step + 127) << 23);
    const float z = y * f32_of_bits((u32)(n - step + 127) << 23);
    return f32_of_bits(bits_of_f32(z) | (size > 0x7f800000u ? 0x7fc00000u : 0u));
}

/* ln x for normal x > 0: x = 2^n m with m in [sqrt(1/2), sqrt(2)), and a polynomial in
 * m - 1. */
FUNC float log_f32(float x)
{
    const u32 u = bits_of_f32(x) - 0x3f3504f3u;
    const float n = (float)((int)(u >> 23 & 0x1ffu) - (u >> 31 ? 512 : 0));
    const float f = f32_of_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    p = p * f * f * f - 0.5f * f * f + n * -2.12194440e-4f;
    return p + f + n * 0.693359375f;
}

/* tanh x: a polynomial near zero, where 1 - 2 / (e^2x + 1) would cancel. */
FUNC float tanh_f32(float x)
{
    const float a = abs_f32(x), s = x * x;
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    p = p * s * x + x;
    const float above = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
    return a < 0.625f ? p : x < 0.0f ? -above : above;
}

/* Sum and maximum of n values, a power of two, by halves, which vectorises. The values are
 * overwritten. A NaN is never the maximum. */
FUNC float sum_of(PRIVATE float *v, int n)
{
    for (int span = n / 2; span > 0; span /= 2)
        for (int i = 0; i < span; i++)
            v[i] += v[i + span];
    return v[0];
}

FUNC float max_of(PRIVATE float *v, int n)
{
    for (int span = n / 2; span > 0; span /= 2)
        for (int i = 0; i < span; i++)
            v[i] = max_f32(v[i + span], v[i]);
    return v[0];
}

#endif
