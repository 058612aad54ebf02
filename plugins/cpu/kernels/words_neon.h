/* SPDX-License-Identifier: MIT */
/* words_neon.h - the operations of words.h for AArch64, whose baseline has 128-bit vectors. */
#include <arm_neon.h>
#include <string.h>

enum { LANES = 4 };
typedef float32x4_t vf;

INLINE vf vf_set(float x)
{
    return vdupq_n_f32(x);
}

INLINE vf vf_load(const float *p)
{
    return vld1q_f32(p);
}

INLINE void vf_store(float *p, vf v)
{
    vst1q_f32(p, v);
}

INLINE vf vf_load_part(const float *p, int64_t n)
{
    float some[LANES] = { 0 };
    memcpy(some, p, (size_t)n * sizeof *p);
    return vld1q_f32(some);
}

INLINE void vf_store_part(float *p, vf v, int64_t n)
{
    float some[LANES];
    vst1q_f32(some, v);
    memcpy(p, some, (size_t)n * sizeof *p);
}

INLINE vf vf_part(vf v, int64_t n, vf rest)
{
    const uint32x4_t lane = { 0, 1, 2, 3 };
    return vbslq_f32(vcltq_u32(lane, vdupq_n_u32((uint32_t)n)), v, rest);
}

INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

INLINE vf vf_max(vf a, vf b)
{
    return vmaxq_f32(a, b);
}

INLINE vf vf_clamp(vf v, vf lo, vf hi)
{
    return vminq_f32(hi, vmaxq_f32(lo, v));
}

INLINE vf vf_abs(vf v)
{
    return vabsq_f32(v);
}

INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return vbslq_f32(vcltq_f32(a, b), x, y);
}

INLINE bool vf_any_above(vf a, vf b)
{
    return vminvq_u32(vcleq_f32(a, b)) == 0;
}

INLINE vf vf_round(vf v)
{
    return vrndnq_f32(v);
}

/* In two steps, by 2^(n/2) and the rest; only the second step may round. A sum with 1.5 * 2^23 has
 * n in its low bits, and adding 254 makes the exponents of both powers. */
INLINE vf vf_times_power(vf v, vf n)
{
    const uint32x4_t sum = vreinterpretq_u32_f32(n + vf_set(0x1.8p23f + 254.0f));
    const uint32x4_t half = vshrq_n_u32(sum, 1), rest = vsubq_u32(sum, half);
    const vf most = vreinterpretq_f32_u32(vshlq_n_u32(half, 23));
    return v * most * vreinterpretq_f32_u32(vshlq_n_u32(rest, 23));
}

INLINE float vf_sum(vf v)
{
    return vaddvq_f32(v);
}

INLINE float vf_greatest(vf v)
{
    return vmaxvq_f32(v);
}

INLINE vf vf_sums(const vf v[LANES])
{
    return vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3]));
}

INLINE vf vf_swap(vf v)
{
    return vrev64q_f32(v);
}

INLINE void vf_transpose(vf v[LANES])
{
    const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(v[0], v[1]));
    const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(v[0], v[1]));
    const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(v[2], v[3]));
    const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(v[2], v[3]));
    v[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    v[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    v[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    v[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

/* ---- bytes ---- */

INLINE uint8x8_t load_4_bytes(const void *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpret_u8_u32(vdup_n_u32(four));
}

INLINE vf vf_load_i8(const void *p)
{
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(load_4_bytes(p)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}

INLINE vf vf_of_4_bytes(uint8x8_t bytes)
{
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
}

INLINE vf vf_load_low4(const void *p)
{
    return vf_of_4_bytes(vand_u8(load_4_bytes(p), vdup_n_u8(15)));
}

INLINE vf vf_load_high4(const void *p)
{
    return vf_of_4_bytes(vshr_n_u8(load_4_bytes(p), 4));
}

/* ---- 16 bits ---- */

INLINE vf vf_set_f16(const void *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h)));
}

INLINE vf vf_of_f16(uint16x4_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(h));
}

INLINE uint16x4_t f16_of_vf(vf v)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(v));
}

INLINE vf vf_of_bf16(uint16x4_t h)
{
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}

/* A NaN stays one, whatever its low bits. */
INLINE uint16x4_t bf16_of_vf(vf v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v), high = vshrq_n_u32(bits, 16);
    const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    const uint32x4_t half = vaddq_u32(odd, vdupq_n_u32(0x7fff));
    const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, half), 16);
    const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet));
}

INLINE uint16x4_t load_part_16(const uint16_t *p, int64_t n)
{
    uint16_t some[LANES] = { 0 };
    memcpy(some, p, (size_t)n * sizeof *p);
    return vld1_u16(some);
}

INLINE void store_part_16(uint16_t *p, uint16x4_t h, int64_t n)
{
    uint16_t some[LANES];
    vst1_u16(some, h);
    memcpy(p, some, (size_t)n * sizeof *p);
}

INLINE vf vf_load_f16(const uint16_t *p)
{
    return vf_of_f16(vld1_u16(p));
}

INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_of_bf16(vld1_u16(p));
}

INLINE void vf_store_f16(uint16_t *p, vf v)
{
    vst1_u16(p, f16_of_vf(v));
}

INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    vst1_u16(p, bf16_of_vf(v));
}

INLINE vf vf_load_part_f16(const uint16_t *p, int64_t n)
{
    return vf_of_f16(load_part_16(p, n));
}

INLINE vf vf_load_part_bf16(const uint16_t *p, int64_t n)
{
    return vf_of_bf16(load_part_16(p, n));
}

INLINE void vf_store_part_f16(uint16_t *p, vf v, int64_t n)
{
    store_part_16(p, f16_of_vf(v), n);
}

INLINE void vf_store_part_bf16(uint16_t *p, vf v, int64_t n)
{
    store_part_16(p, bf16_of_vf(v), n);
}

/* ---- integers ---- */

typedef int32x4_t vi;

INLINE vi vi_set(int32_t x)
{
    return vdupq_n_s32(x);
}

INLINE vi vi_load(const void *p)
{
    return vreinterpretq_s32_u8(vld1q_u8(p));
}

INLINE void vi_store(void *p, vi v)
{
    vst1q_u8(p, vreinterpretq_u8_s32(v));
}

INLINE vi vi_load_pieces(const void *p, int64_t stride)
{
    (void)stride;
    return vi_load(p);
}

INLINE void vi_transpose(vi v[4])
{
    vf f[4];
    for (int i = 0; i < 4; i++)
        f[i] = vreinterpretq_f32_s32(v[i]);
    vf_transpose(f);
    for (int i = 0; i < 4; i++)
        v[i] = vreinterpretq_s32_f32(f[i]);
}

/* No immediate shift counts: without optimisation, a compiler does not see the constants. */
INLINE vi vi_shr(vi v, int n)
{
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(v), vdupq_n_s32(-n)));
}

INLINE vi vi_sra(vi v, int n)
{
    return vshlq_s32(v, vdupq_n_s32(-n));
}

INLINE vi vi_shl(vi v, int n)
{
    return vshlq_s32(v, vdupq_n_s32(n));
}

INLINE vf vf_of_vi(vi v)
{
    return vcvtq_f32_s32(v);
}

INLINE vi vi_round(vf v)
{
    return vcvtnq_s32_f32(v);
}

INLINE vi vi_trunc(vf v)
{
    return vcvtq_s32_f32(v);
}

INLINE int32_t vi_sum(vi v)
{
    return vaddvq_s32(v);
}

INLINE void vi_store_i8(int8_t *p, vi v)
{
    const int16x4_t halves = vmovn_s32(v);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    memcpy(p, &bytes, LANES);
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_4_bytes(p)))));
}

/* ---- runs of 32 codes, as GGML's blocks have them ---- */

INLINE vi vi_load_halves(const void *p, int v)
{
    const vi codes = vi_load(p);
    return (v ? vi_shr(codes, 4) : codes) & vi_set(0x0f0f0f0f);
}

INLINE vi vi_load_fifths(const void *p, int v)
{
    static const uint8_t bit[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    const uint8_t *byte = (const uint8_t *)p + 2 * v;
    const uint8x16_t bytes = vcombine_u8(vdup_n_u8(byte[0]), vdup_n_u8(byte[1]));
    const uint8x8_t bits = vld1_u8(bit);
    return vreinterpretq_s32_u8(
        vandq_u8(vtstq_u8(bytes, vcombine_u8(bits, bits)), vdupq_n_u8(16)));
}

INLINE vf vf_load_f16_apart(const void *p, int64_t step)
{
    const char *at = p;
    uint16_t h[LANES];
    EACH (i, LANES)
        memcpy(&h[i], at + i * step, sizeof h[i]);
    return vf_of_f16(vld1_u16(h));
}

INLINE vf vf_set_half(const float *p, int v)
{
    return vf_set(p[v]);
}

INLINE vi vi_set_half(const int32_t *p, int v)
{
    return vi_set(p[v]);
}

#define HAS_DOTS 1
enum { DOT_ZERO = 0 };

INLINE vi dot_begin(int bits, int32_t start)
{
    (void)bits;
    return vi_set(start);
}

INLINE vi dot_add(int bits, vi sum, vi codes, vi bytes)
{
    const int8x16_t u = vreinterpretq_s8_s32(codes), x = vreinterpretq_s8_s32(bytes);
    (void)bits;
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, u, x);
#else
    const int16x8_t first = vmull_s8(vget_low_s8(u), vget_low_s8(x));
    const int16x8_t second = vmull_high_s8(u, x);
    return vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(first), vpaddlq_s16(second)));
#endif
}

INLINE vi dot_end(int bits, vi sum, int32_t start)
{
    (void)bits, (void)start;
    return sum;
}

/* ---- products of squares ---- */

#if defined(WORDS_SQUARES)
#define HAS_SQUARES 1

INLINE vi vi_set_two(const int32_t *p)
{
    return vreinterpretq_s32_s64(vld1q_dup_s64((const int64_t *)(const void *)p));
}

INLINE vf vf_set_two(const float *p)
{
    return vreinterpretq_f32_f64(vld1q_dup_f64((const double *)(const void *)p));
}

INLINE vi vi_turns(vi a, vi b, bool second)
{
    return second ? vzip2q_s32(a, b) : vzip1q_s32(a, b);
}

INLINE vf vf_turns(vf a, vf b, bool second)
{
    return second ? vzip2q_f32(a, b) : vzip1q_f32(a, b);
}

INLINE vi square_add(vi sum, vi rows, vi columns)
{
    return vmmlaq_s32(sum, vreinterpretq_s8_s32(rows), vreinterpretq_s8_s32(columns));
}

INLINE vf vf_columns(vf a, vf b, bool second)
{
    return second ? vuzp2q_f32(a, b) : vuzp1q_f32(a, b);
}
#endif

/* ---- products of halves ---- */

#if defined(WORDS_HALVES)
#define HAS_HALVES 1
typedef float16x8_t vh;

INLINE vh vh_load(const uint16_t *p)
{
    return vreinterpretq_f16_u16(vld1q_u16(p));
}

INLINE vh vh_load_part(const uint16_t *p, int64_t n)
{
    uint16_t some[2 * LANES] = { 0 };
    memcpy(some, p, (size_t)n * sizeof *p);
    return vh_load(some);
}

INLINE vf vf_add_halves(vf sum, vh a, vh b)
{
    return vfmlalq_high_f16(vfmlalq_low_f16(sum, a, b), a, b);
}
#endif

/* ---- products of pairs ---- */

#if defined(WORDS_PAIRS)
#define HAS_PAIRS 1

INLINE vf vf_add_pairs(vf sum, float pair, vf v)
{
    const float32x2_t word = { pair };
    return vbfdotq_lane_f32(sum, vreinterpretq_bf16_f32(v), vreinterpret_bf16_f32(word), 0);
}

INLINE vf vf_dot_pairs(vf sum, vf a, vf b)
{
    return vbfdotq_f32(sum, vreinterpretq_bf16_f32(a), vreinterpretq_bf16_f32(b));
}

INLINE void vf_store_pairs(uint16_t *p, vf v)
{
    vst1_u16(p, vreinterpret_u16_bf16(vcvt_bf16_f32(v)));
}
#endif
