/* SPDX-License-Identifier: MIT */
/* words.h - vector operations for the texts of this folder, with the same names for each
 * instruction set.
 *
 * A text is compiled for each instruction set that kernels.def lists for it, with the compiler's
 * options of that set and with ISA as its name. The compiler's macros tell which operations a set
 * has, except for choices that change a text, which meson.build makes: WORDS_256 selects the
 * operations of AVX2 where AVX-512 exists, too, and on AArch64 there are WORDS_SQUARES,
 * WORDS_HALVES and WORDS_PAIRS. Vectors of floats are added, subtracted, multiplied and divided
 * with the operators of C.
 *
 *   LANES                 floats of a vector: 16, 8 or 4
 *   vf                    LANES floats
 *   vf_set(x)             all of them x
 *   vf_load(p) vf_store(p, v)               at any address
 *   vf_load_part(p, n) vf_store_part(p, v, n)  the first n, 0 .. LANES; others are loaded as 0
 *   vf_part(v, n, rest)   the first n of v, then those of rest
 *   vf_fma(a, b, c)       a * b + c, rounded once
 *   vf_max(a, b)          of numbers; which one a NaN gives depends on the set
 *   vf_clamp(v, lo, hi)   within lo .. hi, which are vectors; a NaN stays one
 *   vf_abs(v)
 *   vf_if_less(a, b, x, y)   x where a < b, which is false for a NaN, else y
 *   vf_any_above(a, b)    whether a lane of a is greater than that of b, or a NaN
 *   vf_round(v)           to the nearest whole number, of two the even one
 *   vf_times_power(v, n)  v * 2^n, rounded once, for whole n of -254 .. 254; other n are rounded
 *                         down if HAS_TABLES
 *   vf_sum(v) vf_greatest(v)
 *   vf_sums(v)            lane i is the sum of v[i], for LANES vectors, all in the same order
 *   vf_swap(v)            exchanges lanes 2 i and 2 i + 1
 *   vf_transpose(v)       of LANES vectors: lane j of v[i] becomes lane i of v[j]
 *   vf_load_i8(p)         LANES bytes with a sign
 *   vf_load_low4(p) vf_load_high4(p)   the low, the high halves of LANES bytes
 *   vf_set_f16(p)         all of them the f16 at p, at any address
 *
 * _f16 and _bf16 after vf_load, vf_load_part, vf_store and vf_store_part: memory has 16 bits,
 * stores round to nearest even.
 *
 *   vi                    LANES integers of 32 bits, or as many words of 4 bytes; & | ^ work on it
 *   vi_set(x)             all of them x
 *   vi_load(p) vi_store(p, v)   at any address
 *   vi_load_pieces(p, n)  LANES / 4 pieces of 16 bytes, which begin n bytes apart
 *   vi_transpose(v)       of four vectors: in each 16 bytes, word j of v[i] becomes word i of v[j]
 *   vi_shr(v, n) vi_shl(v, n)   by n bits, without a sign
 *   vi_sra(v, n)          by n bits, with a sign
 *   vf_of_vi(v)           as floats
 *   vf_of_bits(v)         the floats that have these bits
 *   vi_round(v)           the nearest integers, of equally near ones the even one
 *   vi_trunc(v)           the integers between v and 0 that are nearest to v
 *   vi_sum(v)
 *   vi_store_i8(p, v)     LANES bytes of integers from -128 to 127
 *   vf_load_u8(p)         LANES bytes as floats
 *
 * Dot products of words, if HAS_DOTS: in each lane, 4 codes of `bits` bits times 4 bytes from -127
 * to 127. Codes of 4, 5 and 6 bits are unsigned; codes of 8 bits count as code + DOT_ZERO, as in
 * pack.h. A sum begins with dot_begin(bits, start), continues with up to 8 times sum =
 * dot_add(bits, sum, codes, bytes), and ends with dot_end(bits, sum, start), its integers.
 *
 * Pieces of 16 bytes, if HAS_PIECES; a vector has four, and DOT_ZERO is 128:
 *   vf_set_piece(p)       the piece at p in each
 *   vf_set_pieces(p, n)   one of four numbers in each, which are n bytes apart
 *   vi_load_two(p, n)     two halves of a vector, which begin n bytes apart
 *   vi_set_halves(low, high)   all words of the first half `low`, of the other one `high`
 *   vi_turn_bytes(v)      of four vectors: byte i of a piece of v[j] becomes byte j of word i % 4
 *                         of that piece of v[i / 4]
 *   vf_turn_pieces(v)     of four vectors: piece j of v[i] becomes piece i of v[j]
 *   vf_greatest_of_pieces(v) vf_sum_of_pieces(v)   in all lanes of each piece
 *
 * Products of squares, if HAS_SQUARES: two rows of 8 bytes from -127 to 127 are a vector, and two
 * rows by two columns are a square of sums. For each of both, or of their rows, two numbers of a
 * column, and in turns:
 *   vi_set_two(p) vf_set_two(p)   the two numbers at p, twice
 *   vi_turns(a, b, second) vf_turns(a, b, second)   words 0 and 1 of a and b in turns: a[0], b[0],
 *                         a[1], b[1]; if `second`, words 2 and 3
 *   square_add(sum, rows, columns)   adds a square: row by row, and in these column by column
 *   vf_columns(a, b, second)   of two squares, one below the other, the first or second column
 *
 * Runs of 32 codes of a byte each, in GGML's blocks, if LANES is 4 or 8: vector v of a run, which
 * is one of two halves for 4 lanes, and 0 for 8.
 *   vi_load_halves(p, v)  the low halves of the 16 bytes at p, then the high ones
 *   vi_load_fifths(p, v)  from 32 bits, one for each code: 16 or 0
 *   vf_load_f16_apart(p, n)   LANES f16, n bytes apart
 *   vf_set_half(p, v) vi_set_half(p, v)   in the lanes of each half of a run, one of two numbers
 *
 * Tables of 16 floats, if HAS_TABLES:
 *   vf_pick(table, v)     of which the low 4 bits of each lane choose
 *
 * Products of pairs, if HAS_PAIRS: words of a vector are two bf16; subnormal ones count as 0.
 *   vf_add_pairs(sum, pair, v)   sum + pair.low * v.low + pair.high * v.high in each lane, where
 *                         `pair` is a float of these bits
 *   vf_dot_pairs(sum, a, b)   the same, of the words of two vectors
 *   vf_store_pairs(p, v)  LANES numbers as bf16, the neighbours of which are pairs
 *
 * Products of halves, if HAS_HALVES: vh has 2 LANES f16.
 *   vh_load(p) vh_load_part(p, n)   as those of floats
 *   vf_add_halves(sum, a, b)   adds to lane i the products of lanes i, and then those of lanes
 *                         LANES + i, rounding each sum once
 *
 * Built from these, for all sets: vf_of_bits(v), vf_exp(v), vf_exp_minus(v), and loads and stores
 * by type. */
#ifndef CPU_WORDS_H
#define CPU_WORDS_H

#include "../cpu.h"
#include "../pack.h"

#include <math.h>

/* PLAN(gemv) is the name of a plan function, plan_gemv_avx2; its row is called gemv_avx2. */
#define PLAN(row)         PLAN_(row, ISA)
#define PLAN_(row, isa)   PLAN__(row, isa)
#define PLAN__(row, isa)  plan_##row##_##isa
#define DECLARE_PLAN(row) kernel_plan_fn PLAN(row)

/* For functions whose `type` or number of rows is a constant in each call. */
#define INLINE static inline __attribute__((always_inline))

/* UNROLL stands before a loop of constant length whose arrays should be in registers; EACH is such
 * a loop over 0 .. n - 1. ROLLED stands before a loop that must not be unrolled. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#define ROLLED _Pragma("GCC unroll 1")
#endif
#define EACH(i, n) UNROLL for (int i = 0; i < (n); i++)

/* Reads from memory do not move across this: in a long text without loops, compilers otherwise
 * start so many reads early that registers run out. */
#define STAY_IN_ORDER __asm__ volatile("" ::: "memory")

/* Prefetches the line `ahead` bytes from p, into the first-level cache (3) or the second (2, 1).
 * The address is computed as an integer: there may be no object. */
#define ASK_FOR(p, ahead, cache)                                                           \
    __builtin_prefetch((const void *)((uintptr_t)(p) + (uintptr_t)(ahead)), 0, cache)

#if defined(__AVX512F__) && !defined(WORDS_256)
#include "words_avx512.h"
#elif defined(__AVX2__)
#include "words_avx2.h"
#elif defined(__aarch64__)
#include "words_neon.h"
#else
#error "this text needs a vector instruction set: see meson.build"
#endif

/* ---- in terms of these ---- */

INLINE vf vf_of_bits(vi v)
{
    return (vf)v;
}

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: a polynomial. Its error is 2^-28 of e^r. */
INLINE vf vf_exp_curve(vf r)
{
    vf p = vf_fma(vf_set(0x1.6ac74ep-10f), r, vf_set(0x1.123de0p-7f));
    p = vf_fma(p, r, vf_set(0x1.555858p-5f));
    p = vf_fma(p, r, vf_set(0x1.55548cp-3f));
    return vf_fma(p, r, vf_set(0x1.fffffcp-2f));
}

INLINE vf times_sign(float sign, vf v)
{
    return sign > 0 ? v : (vf)-v;
}

#if defined(HAS_TABLES)
/* 2^(i / 16) as floats, and their rounding errors. */
static const float sixteenths[16] = {
    0x1.000000p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
    0x1.306fe0p+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f,
};
static const float lacking[16] = {
    0.0f,
    0x1.9f3122p-25f,
    -0x1.c15742p-27f,
    0x1.ceac46p-25f,
    0x1.4636e2p-25f,
    0x1.824684p-25f,
    -0x1.593abcp-25f,
    -0x1.5bd5ecp-27f,
    0x1.9fcef2p-26f,
    -0x1.829fd0p-25f,
    0x1.15506ep-27f,
    0x1.51f848p-27f,
    -0x1.a94b14p-26f,
    -0x1.3d56b2p-27f,
    -0x1.822dbcp-27f,
    0x1.52486cp-27f,
};

/* e^x within 0.8 ulp; e^-x if `sign` is -1. Results may be subnormal; -inf gives 0, overflow gives
 * inf, and a NaN stays one. The result is p e^r 2^m with |r| <= ln 2 / 32 and p from the table of
 * sixteenths: this takes a third fewer multiplications, which dominate the time. Adding `rounder`
 * rounds to sixteenths and leaves their number in the low bits. */
INLINE vf vf_exp_of(float sign, vf x)
{
    const vf rounder = vf_set(0x1.8p+19f);
    const vf c = sign > 0 ? vf_clamp(x, vf_set(-104.0f), vf_set(89.0f))
                          : vf_clamp(x, vf_set(-89.0f), vf_set(104.0f));
    const vf t = vf_fma(c, vf_set(sign * 0x1.715476p+0f), rounder), n = t - rounder;
    vf r = vf_fma(n, vf_set(sign * -0x1.62e400p-1f), c); /* times sign, and so below */
    r = vf_fma(n, vf_set(sign * -0x1.7f7d1cp-20f), r);
    const vf p = vf_pick(sixteenths, (vi)t), lack = vf_pick(lacking, (vi)t);
    const vf q = vf_fma(vf_fma(r, vf_set(1.0f / 6), vf_set(sign * 0.5f)), r, vf_set(1));
    const vf rest = vf_fma(p, r, times_sign(sign, lack));
    return vf_times_power(vf_fma(times_sign(sign, rest), q, p), n);
}
#else
/* e^x within 1 ulp; e^-x if `sign` is -1: 2^n e^r with |r| <= ln 2 / 2. ln 2 is in two parts; the
 * first is so short that n times it is exact. Results may be subnormal; -inf gives 0, overflow
 * gives inf, and a NaN stays one. */
INLINE vf vf_exp_of(float sign, vf x)
{
    const vf y = times_sign(sign, x);
    const vf c = vf_clamp(y, vf_set(-104.0f), vf_set(89.0f)); /* beyond, 0 and inf */
    const vf n = vf_round(c * vf_set(0x1.715476p+0f));
    vf r = vf_fma(n, vf_set(-0x1.62e400p-1f), c);
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r);
    vf p = vf_fma(vf_exp_curve(r), r, vf_set(1.0f));
    p = vf_fma(p, r, vf_set(1.0f));
    return vf_times_power(p, n);
}
#endif

INLINE vf vf_exp(vf x)
{
    return vf_exp_of(1, x);
}

/* e^-x */
INLINE vf vf_exp_minus(vf x)
{
    return vf_exp_of(-1, x);
}

/* Elements of `type` (HW_F32, HW_F16, HW_BF16, a constant), from the i-th on. */
INLINE vf vf_load_as(int type, const void *row, int64_t i)
{
    return type == HW_F32   ? vf_load((const float *)row + i)
           : type == HW_F16 ? vf_load_f16((const uint16_t *)row + i)
                            : vf_load_bf16((const uint16_t *)row + i);
}

INLINE vf vf_load_part_as(int type, const void *row, int64_t i, int64_t n)
{
    return type == HW_F32   ? vf_load_part((const float *)row + i, n)
           : type == HW_F16 ? vf_load_part_f16((const uint16_t *)row + i, n)
                            : vf_load_part_bf16((const uint16_t *)row + i, n);
}

INLINE void vf_store_as(int type, void *row, int64_t i, vf v)
{
    if (type == HW_F32)
        vf_store((float *)row + i, v);
    else if (type == HW_F16)
        vf_store_f16((uint16_t *)row + i, v);
    else
        vf_store_bf16((uint16_t *)row + i, v);
}

INLINE void vf_store_part_as(int type, void *row, int64_t i, vf v, int64_t n)
{
    if (type == HW_F32)
        vf_store_part((float *)row + i, v, n);
    else if (type == HW_F16)
        vf_store_part_f16((uint16_t *)row + i, v, n);
    else
        vf_store_part_bf16((uint16_t *)row + i, v, n);
}

/* The first byte of row `row` of an operand whose outer extents are [..,n1,n2]. */
static inline char *row_of(void *base, const struct place *place, int64_t n1, int64_t n2,
                           int64_t row)
{
    if (row == 0) /* no divisions, which take longer than a short row */
        return (char *)base + place->offset;
    const int64_t i2 = row % n2, i1 = row / n2 % n1, i0 = row / n2 / n1;
    return (char *)base + place->offset + i0 * place->stride[0] + i1 * place->stride[1] +
           i2 * place->stride[2];
}

#endif
