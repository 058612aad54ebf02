/* SPDX-License-Identifier: MIT */
/* words_avx2.h - the operations of words.h for AVX2, FMA and F16C, in 256 bits. */
#include <immintrin.h>
#include <string.h>

enum { LANES = 8 };
typedef __m256 vf;

INLINE vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}

INLINE vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

INLINE void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

INLINE __m256i first_lanes(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

INLINE vf vf_load_part(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, first_lanes(n));
}

INLINE void vf_store_part(float *p, vf v, int64_t n)
{
    _mm256_maskstore_ps(p, first_lanes(n), v);
}

INLINE vf vf_part(vf v, int64_t n, vf rest)
{
    return _mm256_blendv_ps(rest, v, _mm256_castsi256_ps(first_lanes(n)));
}

INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

/* min and max of a NaN and a number return the second operand. */
INLINE vf vf_clamp(vf v, vf lo, vf hi)
{
    return _mm256_min_ps(hi, _mm256_max_ps(lo, v));
}

INLINE vf vf_abs(vf v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

INLINE bool vf_any_above(vf a, vf b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLE_UQ)) != 0;
}

INLINE vf vf_round(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* In two steps, by 2^(n/2) and the rest; only the second step may round. A sum with 1.5 * 2^23 has
 * n in its low bits, and adding 254 makes the exponents of both powers. */
INLINE vf vf_times_power(vf v, vf n)
{
    const __m256i sum = _mm256_castps_si256(n + vf_set(0x1.8p23f + 254.0f));
    const __m256i half = _mm256_srli_epi32(sum, 1), rest = _mm256_sub_epi32(sum, half);
    const vf most = _mm256_castsi256_ps(_mm256_slli_epi32(half, 23));
    return v * most * _mm256_castsi256_ps(_mm256_slli_epi32(rest, 23));
}

INLINE float vf_sum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE float vf_greatest(vf v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

INLINE vf vf_sums(const vf v[LANES])
{
    const vf a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const vf b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
}

INLINE vf vf_swap(vf v)
{
    return _mm256_permute_ps(v, 0xb1);
}

INLINE void vf_transpose(vf v[LANES])
{
    vf t[LANES], u[LANES];
    EACH (i, 4) {
        t[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
    EACH (i, 2) /* u[4 i + j]: elements j and j + 4 of vectors 4 i .. 4 i + 3 */
        EACH (j, 4) {
            const vf a = t[4 * i + j / 2], b = t[4 * i + j / 2 + 2];
            u[4 * i + j] = j % 2 ? _mm256_shuffle_ps(a, b, 0xee)
                                 : _mm256_shuffle_ps(a, b, 0x44);
        }
    EACH (j, 4) {
        v[j] = _mm256_permute2f128_ps(u[j], u[j + 4], 0x20);
        v[j + 4] = _mm256_permute2f128_ps(u[j], u[j + 4], 0x31);
    }
}

/* ---- bytes ---- */

INLINE vf vf_load_i8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}

INLINE vf vf_load_low4(const void *p)
{
    const __m128i low = _mm_and_si128(_mm_loadl_epi64(p), _mm_set1_epi8(15));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low));
}

INLINE vf vf_load_high4(const void *p)
{
    const __m128i high = _mm_srli_epi16(_mm_loadl_epi64(p), 4);
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_and_si128(high, _mm_set1_epi8(15))));
}

/* ---- 16 bits ---- */

INLINE vf vf_set_f16(const void *p)
{
    short h;
    memcpy(&h, p, sizeof h);
    return _mm256_cvtph_ps(_mm_set1_epi16(h));
}

INLINE vf vf_of_f16(__m128i h)
{
    return _mm256_cvtph_ps(h);
}

INLINE __m128i f16_of_vf(vf v)
{
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}

INLINE vf vf_of_bf16(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* A NaN stays one, whatever its low bits. */
INLINE __m128i bf16_of_vf(vf v)
{
    const __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i h = _mm256_blendv_epi8(rounded, quiet, nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

INLINE __m128i load_part_16(const uint16_t *p, int64_t n)
{
    uint16_t some[LANES] = { 0 };
    memcpy(some, p, (size_t)n * sizeof *p);
    return _mm_loadu_si128((const __m128i *)some);
}

INLINE void store_part_16(uint16_t *p, __m128i h, int64_t n)
{
    uint16_t some[LANES];
    _mm_storeu_si128((__m128i *)some, h);
    memcpy(p, some, (size_t)n * sizeof *p);
}

INLINE vf vf_load_f16(const uint16_t *p)
{
    return vf_of_f16(_mm_loadu_si128((const __m128i *)p));
}

INLINE vf vf_load_bf16(const uint16_t *p)
{
    return vf_of_bf16(_mm_loadu_si128((const __m128i *)p));
}

INLINE void vf_store_f16(uint16_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p, f16_of_vf(v));
}

INLINE void vf_store_bf16(uint16_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p, bf16_of_vf(v));
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

typedef __m256i vi;

INLINE vi vi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}

INLINE vi vi_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE void vi_store(void *p, vi v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

INLINE vi vi_load_pieces(const void *p, int64_t stride)
{
    const __m128i *first = p, *second = (const void *)((const char *)p + stride);
    return _mm256_set_m128i(_mm_loadu_si128(second), _mm_loadu_si128(first));
}

INLINE void vi_transpose(vi v[4])
{
    const vi a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
    const vi c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, c);
    v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d);
    v[3] = _mm256_unpackhi_epi64(b, d);
}

INLINE vi vi_shr(vi v, int n)
{
    return _mm256_srli_epi32(v, n);
}

INLINE vi vi_sra(vi v, int n)
{
    return _mm256_srai_epi32(v, n);
}

INLINE vi vi_shl(vi v, int n)
{
    return _mm256_slli_epi32(v, n);
}

INLINE vf vf_of_vi(vi v)
{
    return _mm256_cvtepi32_ps(v);
}

INLINE vi vi_round(vf v)
{
    return _mm256_cvtps_epi32(v);
}

INLINE vi vi_trunc(vf v)
{
    return _mm256_cvttps_epi32(v);
}

INLINE int32_t vi_sum(vi v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

INLINE void vi_store_i8(int8_t *p, vi v)
{
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(v),
                                           _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(halves, halves));
}

/* Loads from memory even if a register has the bytes: assemblers encode a move of 8 bytes between
 * some registers in a form that valgrind 3.19 does not know. */
INLINE vf vf_load_u8(const uint8_t *p)
{
    __m256i x;
    __asm__("vpmovzxbd %1, %0" : "=x"(x) : "m"(*(const uint64_t *)(const void *)p));
    return vf_of_vi(x);
}

/* ---- runs of 32 codes, as GGML's blocks have them ---- */

INLINE vi vi_load_halves(const void *p, int v)
{
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    (void)v;
    return _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)) &
           vi_set(0x0f0f0f0f);
}

INLINE vi vi_load_fifths(const void *p, int v)
{
    uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    (void)v;
#if defined(__AVX512VL__)
    return _mm256_maskz_mov_epi8(bits, _mm256_set1_epi8(16));
#else
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                             0x0303030303030303);
    const __m256i one = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    const __m256i spread = _mm256_shuffle_epi8(vi_set((int32_t)bits), bytes) & one;
    return _mm256_cmpeq_epi8(spread, one) & _mm256_set1_epi8(16);
#endif
}

INLINE vf vf_load_f16_apart(const void *p, int64_t step)
{
    const char *at = p;
    short h[LANES];
    EACH (i, LANES)
        memcpy(&h[i], at + i * step, sizeof h[i]);
    return vf_of_f16(_mm_setr_epi16(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]));
}

INLINE vf vf_set_half(const float *p, int v)
{
    double both;
    memcpy(&both, p, sizeof both);
    (void)v;
    return _mm256_permutevar_ps(_mm256_castpd_ps(_mm256_set1_pd(both)),
                                _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

INLINE vi vi_set_half(const int32_t *p, int v)
{
    return _mm256_castps_si256(vf_set_half((const float *)(const void *)p, v));
}

#define HAS_DOTS 1
#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
enum { DOT_ZERO = 128 };

INLINE vi dot_begin(int bits, int32_t start)
{
    (void)bits;
    return vi_set(start);
}

INLINE vi dot_add(int bits, vi sum, vi codes, vi bytes)
{
    (void)bits;
#if defined(__AVX512VNNI__)
    return _mm256_dpbusd_epi32(sum, codes, bytes);
#else
    return _mm256_dpbusd_avx_epi32(sum, codes, bytes);
#endif
}

INLINE vi dot_end(int bits, vi sum, int32_t start)
{
    (void)bits, (void)start;
    return sum;
}
#else
/* Products are added in pairs, as 16-bit numbers: 128 x 127 twice fits. With codes of 4 bits, such
 * a number has room for 8 pairs. */
enum { DOT_ZERO = 0 };

INLINE vi dot_begin(int bits, int32_t start)
{
    return bits == 4 ? _mm256_setzero_si256() : vi_set(start);
}

INLINE vi dot_add(int bits, vi sum, vi codes, vi bytes)
{
    if (bits == 4)
        return _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, bytes));
    if (bits == 8) {
        codes = _mm256_xor_si256(codes, _mm256_set1_epi8((char)PACKED_FLIP));
        bytes = _mm256_sign_epi8(bytes, codes);
        codes = _mm256_abs_epi8(codes);
    }
    const vi pairs = _mm256_maddubs_epi16(codes, bytes);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

INLINE vi dot_end(int bits, vi sum, int32_t start)
{
    if (bits == 4)
        return _mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)),
                                vi_set(start));
    return sum;
}
#endif
