/* SPDX-License-Identifier: MIT */
/* words_avx512.h - the operations of words.h for AVX-512 F, BW, DQ and VL, in 512 bits. */
#include <immintrin.h>

enum { LANES = 16 };
typedef __m512 vf;

INLINE vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}

INLINE vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

INLINE void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

INLINE __mmask16 first_lanes(int64_t n)
{
    return (__mmask16)_bzhi_u32(0xffff, (uint32_t)n);
}

INLINE vf vf_load_part(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}

INLINE void vf_store_part(float *p, vf v, int64_t n)
{
    _mm512_mask_storeu_ps(p, first_lanes(n), v);
}

INLINE vf vf_part(vf v, int64_t n, vf rest)
{
    return _mm512_mask_blend_ps(first_lanes(n), rest, v);
}

INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

/* min and max of a NaN and a number return the second operand. */
INLINE vf vf_clamp(vf v, vf lo, vf hi)
{
    return _mm512_min_ps(hi, _mm512_max_ps(lo, v));
}

INLINE vf vf_abs(vf v)
{
    return _mm512_abs_ps(v);
}

INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

INLINE bool vf_any_above(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ) != 0;
}

INLINE vf vf_round(vf v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vf vf_times_power(vf v, vf n)
{
    return _mm512_scalef_ps(v, n);
}

INLINE float vf_sum(vf v)
{
    return _mm512_reduce_add_ps(v);
}

INLINE float vf_greatest(vf v)
{
    return _mm512_reduce_max_ps(v);
}

/* From four vectors whose quarters are 0 .. 3 of a, b, c, d: a vector whose quarters are their
 * sums. */
INLINE vf sums_of_quarters(vf a, vf b, vf c, vf d)
{
    const vf x = _mm512_shuffle_f32x4(a, b, 0x44) + _mm512_shuffle_f32x4(a, b, 0xee);
    const vf y = _mm512_shuffle_f32x4(c, d, 0x44) + _mm512_shuffle_f32x4(c, d, 0xee);
    return _mm512_shuffle_f32x4(x, y, 0x88) + _mm512_shuffle_f32x4(x, y, 0xdd);
}

INLINE vf vf_sums(const vf v[LANES])
{
    const vf a = sums_of_quarters(v[0], v[4], v[8], v[12]);
    const vf b = sums_of_quarters(v[1], v[5], v[9], v[13]);
    const vf c = sums_of_quarters(v[2], v[6], v[10], v[14]);
    const vf d = sums_of_quarters(v[3], v[7], v[11], v[15]);
    const vf x = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b);
    const vf y = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
    return _mm512_shuffle_ps(x, y, 0x44) + _mm512_shuffle_ps(x, y, 0xee);
}

INLINE vf vf_swap(vf v)
{
    return _mm512_permute_ps(v, 0xb1);
}

INLINE void vf_transpose(vf v[LANES])
{
    vf t[LANES], u[LANES];
    EACH (i, 8) {
        t[2 * i] = _mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
    EACH (i, 4) /* u[4 i + j]: element 4 q + j of vectors 4 i .. 4 i + 3 in quarter q */
        EACH (j, 4) {
            const vf a = t[4 * i + j / 2], b = t[4 * i + j / 2 + 2];
            u[4 * i + j] = j % 2 ? _mm512_shuffle_ps(a, b, 0xee)
                                 : _mm512_shuffle_ps(a, b, 0x44);
        }
    EACH (j, 4) {
        const vf a = _mm512_shuffle_f32x4(u[j], u[j + 4], 0x88);
        const vf b = _mm512_shuffle_f32x4(u[j], u[j + 4], 0xdd);
        const vf c = _mm512_shuffle_f32x4(u[j + 8], u[j + 12], 0x88);
        const vf d = _mm512_shuffle_f32x4(u[j + 8], u[j + 12], 0xdd);
        v[j] = _mm512_shuffle_f32x4(a, c, 0x88);
        v[j + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        v[j + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        v[j + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

/* ---- bytes ---- */

INLINE vf vf_load_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}

INLINE vf vf_load_low4(const void *p)
{
    const __m128i low = _mm_and_si128(_mm_loadu_si128(p), _mm_set1_epi8(15));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(low));
}

INLINE vf vf_load_high4(const void *p)
{
    const __m128i high = _mm_srli_epi16(_mm_loadu_si128(p), 4);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_and_si128(high, _mm_set1_epi8(15))));
}

/* ---- 16 bits ---- */

INLINE vf vf_set_f16(const void *p)
{
    short h;
    __builtin_memcpy(&h, p, sizeof h);
    return _mm512_cvtph_ps(_mm256_set1_epi16(h));
}

INLINE vf vf_of_f16(__m256i h)
{
    return _mm512_cvtph_ps(h);
}

INLINE __m256i f16_of_vf(vf v)
{
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}

INLINE vf vf_of_bf16(__m256i h)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* Rounds to nearest even: adds half a unit less one to the bits, and one more if the result would
 * be odd; then takes the high halves. Rounding could carry out of a NaN, so it first becomes the
 * default NaN. */
INLINE __m256i bf16_of_vf(vf v)
{
    const __m512i highs = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                           31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7,
                                           5, 3, 1);
    const __m512i nan = _mm512_set1_epi32(0x33), one = _mm512_set1_epi32(1);
    const __m512i bits = _mm512_castps_si512(_mm512_fixupimm_ps(v, v, nan, 0));
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_mask_add_epi32(sum, odd, sum, one);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi16(highs, rounded));
}

INLINE vf vf_load_f16(const uint16_t *p)
{
    return vf_of_f16(_mm256_loadu_si256((const __m256i *)p));
}

INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_of_bf16(_mm256_loadu_si256((const __m256i *)p));
}

INLINE void vf_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, f16_of_vf(v));
}

INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p, bf16_of_vf(v));
}

INLINE vf vf_load_part_f16(const uint16_t *p, int64_t n)
{
    return vf_of_f16(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

INLINE vf vf_load_part_bf16(const uint16_t *p, int64_t n)
{
    return vf_of_bf16(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

INLINE void vf_store_part_f16(uint16_t *p, vf v, int64_t n)
{
    _mm256_mask_storeu_epi16(p, first_lanes(n), f16_of_vf(v));
}

INLINE void vf_store_part_bf16(uint16_t *p, vf v, int64_t n)
{
    _mm256_mask_storeu_epi16(p, first_lanes(n), bf16_of_vf(v));
}

#if defined(__AVX512BF16__)
#define HAS_PAIRS 1

INLINE vf vf_add_pairs(vf sum, float pair, vf v)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)vf_set(pair), (__m512bh)v);
}

INLINE vf vf_dot_pairs(vf sum, vf a, vf b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/* Rounds to nearest even; subnormal numbers become 0, as in vf_add_pairs(). */
INLINE void vf_store_pairs(uint16_t *p, vf v)
{
    const __m256bh pairs = _mm512_cvtneps_pbh(v);
    __builtin_memcpy(p, &pairs, sizeof pairs);
}
#endif

/* ---- integers ---- */

typedef __m512i vi;

INLINE vi vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

INLINE vi vi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE void vi_store(void *p, vi v)
{
    _mm512_storeu_si512(p, v);
}

INLINE vi vi_load_pieces(const void *p, int64_t stride)
{
    const char *at = p;
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(at + stride)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(at + 2 * stride)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(at + 3 * stride)), 3);
}

INLINE vf vf_set_piece(const float *p)
{
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}

INLINE vf vf_set_pieces(const float *p, int64_t stride)
{
    const char *at = (const char *)p;
    vf v = _mm512_setzero_ps();
    EACH (i, 4) {
        float x;
        __builtin_memcpy(&x, at + i * stride, sizeof x);
        v = _mm512_mask_mov_ps(v, (__mmask16)(15 << 4 * i), vf_set(x));
    }
    return v;
}

INLINE vi vi_load_two(const void *p, int64_t stride)
{
    const char *at = p;
    const __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256(p));
    return _mm512_inserti64x4(v, _mm256_loadu_si256((const void *)(at + stride)), 1);
}

INLINE vi vi_set_halves(int32_t low, int32_t high)
{
    return _mm512_mask_set1_epi32(_mm512_set1_epi32(low), 0xff00, high);
}

INLINE void vi_turn_bytes(vi v[4])
{
    const vi a = _mm512_unpacklo_epi8(v[0], v[1]), b = _mm512_unpackhi_epi8(v[0], v[1]);
    const vi c = _mm512_unpacklo_epi8(v[2], v[3]), d = _mm512_unpackhi_epi8(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi16(a, c);
    v[1] = _mm512_unpackhi_epi16(a, c);
    v[2] = _mm512_unpacklo_epi16(b, d);
    v[3] = _mm512_unpackhi_epi16(b, d);
}

INLINE void vf_turn_pieces(vf v[4])
{
    const vf a = _mm512_shuffle_f32x4(v[0], v[1], 0x44);
    const vf b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
    const vf c = _mm512_shuffle_f32x4(v[0], v[1], 0xee);
    const vf d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_f32x4(a, b, 0x88);
    v[1] = _mm512_shuffle_f32x4(a, b, 0xdd);
    v[2] = _mm512_shuffle_f32x4(c, d, 0x88);
    v[3] = _mm512_shuffle_f32x4(c, d, 0xdd);
}

INLINE vf vf_greatest_of_pieces(vf v)
{
    const vf two = _mm512_max_ps(v, _mm512_permute_ps(v, 0xb1));
    return _mm512_max_ps(two, _mm512_permute_ps(two, 0x4e));
}

INLINE vf vf_sum_of_pieces(vf v)
{
    const vf two = v + _mm512_permute_ps(v, 0xb1);
    return two + _mm512_permute_ps(two, 0x4e);
}

INLINE void vi_transpose(vi v[4])
{
    const vi a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    const vi c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(a, c);
    v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d);
    v[3] = _mm512_unpackhi_epi64(b, d);
}

INLINE vi vi_shr(vi v, int n)
{
    return _mm512_srli_epi32(v, (unsigned)n);
}

INLINE vi vi_sra(vi v, int n)
{
    return _mm512_srai_epi32(v, (unsigned)n);
}

INLINE vi vi_shl(vi v, int n)
{
    return _mm512_slli_epi32(v, (unsigned)n);
}

INLINE vf vf_of_vi(vi v)
{
    return _mm512_cvtepi32_ps(v);
}

INLINE vi vi_round(vf v)
{
    return _mm512_cvtps_epi32(v);
}

INLINE vi vi_trunc(vf v)
{
    return _mm512_cvttps_epi32(v);
}

INLINE int32_t vi_sum(vi v)
{
    return _mm512_reduce_add_epi32(v);
}

INLINE void vi_store_i8(int8_t *p, vi v)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return vf_of_vi(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* ---- tables ---- */

#define HAS_TABLES 1

INLINE vf vf_pick(const float table[16], vi index)
{
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}

#if defined(__AVX512VNNI__)
#define HAS_DOTS   1
#define HAS_PIECES 1
enum { DOT_ZERO = 128 };

INLINE vi dot_begin(int bits, int32_t start)
{
    (void)bits;
    return vi_set(start);
}

INLINE vi dot_add(int bits, vi sum, vi codes, vi bytes)
{
    (void)bits; /* gcc 12 copies the sums of the intrinsic function in loops */
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(bytes));
    return sum;
}

INLINE vi dot_end(int bits, vi sum, int32_t start)
{
    (void)bits, (void)start;
    return sum;
}
#endif
