/* SPDX-License-Identifier: MIT */
/* prelude/math.h - functions of floats: the same text, and therefore the same result, on every
 * device. The first of the prelude files; it follows the dialect and args.h. */
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

/* An integer that orders as the float does; both zeros are equal, and all NaNs are equal and
 * last. */
FUNC int order_of(float v)
{
    const u32 u = bits_of_f32(v), size = u & 0x7fffffffu;
    const int key = u == size ? (int)size : -(int)size;
    return size > 0x7f800000u ? 0x7fffffff : key;
}

/* e^r - 1 for |r| <= ln 2 / 2: a polynomial. */
FUNC float exp_below(float r)
{
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * r * r + r;
}

/* e^x, within 2 ulp: 2^n e^r with |r| <= ln 2 / 2, and 2^n applied in two steps so that
 * results may be subnormal. Beyond +-104 the result is 0 or infinite. It has selects instead
 * of branches, so that loops over it vectorise. */
LOOP_FUNC float exp_f32(float x)
{
    const u32 size = bits_of_f32(x) & 0x7fffffffu;
    const float c = sign_from(f32_of_bits(size < 0x42d00000u ? size : 0x42d00000u), x);
    const float t = c * 1.44269504f;
    const int n = (int)(t + sign_from(0.5f, t));
    const float whole = (float)n;
    const float r = c - whole * 0.693145752f - whole * 1.42860677e-6f;
    const float p = exp_below(r) + 1.0f;
    const int step = n >> 1;
    const float y = p * f32_of_bits((u32)(step + 127) << 23);
    const float z = y * f32_of_bits((u32)(n - step + 127) << 23);
    return f32_of_bits(bits_of_f32(z) | (size > 0x7f800000u ? 0x7fc00000u : 0u));
}

/* e^x - 1, within 4 ulp: near zero, the difference would cancel. */
FUNC float expm1_f32(float x)
{
    const float near_zero = exp_below(x), elsewhere = exp_f32(x) - 1.0f;
    return abs_f32(x) < 0.34657359f ? near_zero : elsewhere;
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
LOOP_FUNC float tanh_f32(float x)
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

/* The tail of the normal distribution beyond t >= 0, erfc(t / sqrt(2)) / 2: e^(-t^2 / 2), times
 * a polynomial in k = 1 / (1 + 0.34 t), fitted to within 4e-8 for t up to 14.5, where e^(-t^2 / 2)
 * vanishes. Its error is that of the exponent, t^2 / 2 units, and up to 7 more. */
FUNC float normal_tail_f32(float t)
{
    const float k = 1.0f / (1.0f + 0.34f * t);
    float p = -2.5876142085e-2f;
    p = p * k + 1.3835564256e-1f;
    p = p * k - 2.7086815238e-1f;
    p = p * k + 1.9971440732e-1f;
    p = p * k - 4.3104179204e-2f;
    p = p * k + 1.1471275240e-1f;
    p = p * k + 1.1535190791e-1f;
    p = p * k + 1.3609220088e-1f;
    p = p * k + 1.3562157750e-1f;
    return p * k * exp_f32(-0.5f * t * t);
}

/* x times the part of the normal distribution below x. */
FUNC float gelu_f32(float x)
{
    const float tail = normal_tail_f32(abs_f32(x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

/* x (1 + tanh(t / 2)) / 2 = x / (1 + e^-t), which does not cancel. */
FUNC float gelu_tanh_f32(float x)
{
    const float t = 1.59576912f * (x + 0.044715f * x * x * x);
    return x / (1.0f + exp_f32(-t));
}

FUNC float elu_f32(float x, float alpha)
{
    const float below = alpha * expm1_f32(x);
    return x < 0.0f ? below : x;
}

/* v = f(v) for n values; the kind is tested once. */
FUNC void activate(PRIVATE float *v, struct activation f, int n)
{
    switch (f.kind) {
#define KIND(NAME, value)                                                                  \
    case ACTIVATION_##NAME:                                                                \
        for (int i = 0; i < n; i++) {                                                      \
            const float x = v[i];                                                          \
            v[i] = value;                                                                  \
        }                                                                                  \
        break;
        KIND(RELU, x < 0.0f ? 0.0f : x)
        KIND(LEAKY_RELU, x < 0.0f ? f.alpha * x : x)
        KIND(ELU, elu_f32(x, f.alpha))
        KIND(SIGMOID, 1.0f / (1.0f + exp_f32(-x)))
        KIND(TANH, tanh_f32(x))
        KIND(GELU, gelu_f32(x))
        KIND(GELU_TANH, gelu_tanh_f32(x))
        KIND(GELU_QUICK, x / (1.0f + exp_f32(-1.702f * x)))
        KIND(SILU, x / (1.0f + exp_f32(-x)))
        KIND(CLIP, x < f.lo ? f.lo : x > f.hi ? f.hi : x)
#undef KIND
    }
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
