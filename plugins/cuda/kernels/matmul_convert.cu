/* SPDX-License-Identifier: MIT */
/* Operands of products in another type, where the matrix units do not take theirs: f32 and blocks in
 * 16 bits, and all types in f32 for products that are as exact as that. They aim at the rate of
 * memory: 16 bytes in each store, and few instructions for each number.
 *
 * docs/cuda-kernels.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "pairs.h"

#include "cell_words.h"

#include "matmul_convert.h"

/* ---- 16 bits from f32, f16 or bf16 ---- */

struct __attribute__((aligned(16))) four {
    float v[4];
};

struct __attribute__((aligned(8))) pairs {
    u32 v[2];
};

FUNC float group_max(float v)
{
    SHARED float of_warp[ROUND_MOST / 32];
    for (int distance = 16; distance; distance /= 2)
        v = max_f32(v, of_lane(v, local_id() % 32 ^ distance));
    if (local_id() % 32 == 0)
        of_warp[local_id() / 32] = v;
    BARRIER();
    for (int i = 0; i < local_count() / 32; i++)
        v = max_f32(v, of_warp[i]);
    return v;
}

/* The exponent, as f32 stores it, of the power of two that brings numbers of at most `most`, which
 * may be infinite, below 2^15. */
FUNC u32 range_of(float most)
{
    const u32 exponent = bits_of_f32(most) >> 23;
    return exponent < 15 ? 1 : exponent - 14;
}

/* Returns what a row is to be multiplied by, and stores the inverse. */
FUNC float range_row(const struct four *x, float *scale)
{
    float most = 0.0f;
    UNROLL for (int q = 0; q < ROUND_QUADS; q++) UNROLL for (int i = 0; i < 4; i++)
        most = max_f32(most, abs_f32(x[q].v[i]));
    const u32 range = range_of(group_max(most));
    if (local_id() == 0)
        scale[group_id()] = f32_of_bits(range << 23);
    return f32_of_bits((254 - range) << 23);
}

/* Numbers 4 i to 4 i + 3 of a row. */
FUNC struct four four_of(u64 row, int type, int i)
{
    if (type == STORAGE_F32)
        return ((const struct four *)row)[i];
    const struct pairs p = ((const struct pairs *)row)[i];
    struct four x;
    UNROLL for (int j = 0; j < 4; j++)
    {
        const u16 half = (u16)(p.v[j / 2] >> j % 2 * 16);
        x.v[j] = type == STORAGE_F16 ? f32_of_f16(half) : f32_of_bf16(half);
    }
    return x;
}

/* Quad i of a row; `mixed`: in the order of block_halves.h. */
template <int TYPE> FUNC void put_four(struct pairs *row, int i, const float *v, bool mixed)
{
    if (!mixed) {
        row[i] = { { pair_of<TYPE>(v[0], v[1]), pair_of<TYPE>(v[2], v[3]) } };
        return;
    }
    u32 *words = (u32 *)(row + i / 4 * 4) + i % 4;
    words[0] = pair_of<TYPE>(v[0], v[2]);
    words[4] = pair_of<TYPE>(v[1], v[3]);
}

template <int TYPE, bool MIXED> FUNC void round_row(const struct convert_args *s)
{
    const u64 from = s->from + group_id() * s->from_stride;
    struct pairs *to = (struct pairs *)(s->to + group_id() * s->to_stride);
    const int count = s->k / 4, step = local_count();
    struct four x[ROUND_QUADS];
    UNROLL for (int q = 0; q < ROUND_QUADS; q++)
        x[q] = local_id() + q * step < count ? four_of(from, s->type, local_id() + q * step)
                                             : four{ { 0.0f, 0.0f, 0.0f, 0.0f } };
    const float factor = TYPE == STORAGE_F16 ? range_row(x, (float *)s->scale) : 1.0f;
    UNROLL for (int q = 0; q < ROUND_QUADS; q++) if (local_id() + q * step < count)
    {
        UNROLL for (int i = 0; i < 4; i++) x[q].v[i] *= factor;
        put_four<TYPE>(to, local_id() + q * step, x[q].v, MIXED);
    }
}

KERNEL(convert_round_f16)(struct convert_args s)
{
    round_row<STORAGE_F16, false>(&s);
}

KERNEL(convert_round_mixed)(struct convert_args s)
{
    take_turn();
    round_row<STORAGE_F16, true>(&s);
}

KERNEL(convert_round_bf16)(struct convert_args s)
{
    round_row<STORAGE_BF16, false>(&s);
}

/* ---- blocks, 16 bits ---- */

/* Eight neighbours of a block, four to a word: a number is (code - less) * scale + offset. */
struct codes {
    u32 word[2];
    float less, scale, offset;
};

/* 8 bytes at an even address. */
FUNC void take(u32 *to, const u8 *from)
{
    const u16 *at = (const u16 *)from;
    to[0] = at[0] | (u32)at[1] << 16;
    to[1] = at[2] | (u32)at[3] << 16;
}

/* Codes of which byte i has 4 bits, from bit `shift` on. */
FUNC void take_halves(struct codes *c, const u8 *from, int shift)
{
    take(c->word, from);
    UNROLL for (int i = 0; i < 2; i++) c->word[i] = c->word[i] >> shift & 0x0f0f0f0f;
}

/* Adds further bits of the codes: byte i has some, from bit `shift` on. */
FUNC void take_upper(struct codes *c, const u8 *from, int shift, u32 mask)
{
    u32 upper[2];
    take(upper, from);
    UNROLL for (int i = 0; i < 2; i++) c->word[i] |= (upper[i] >> shift & mask) << 4;
}

/* Adds fifth bits: bits 0 to 7 of `bits`. */
FUNC void add_fifths(struct codes *c, u32 bits)
{
    UNROLL for (int i = 0; i < 2; i++)
        c->word[i] |= fifths_of(bits, 4 * i);
}

/* `first`: of the eight, in the row. */
FUNC void take_q8_0(struct codes *c, const u8 *row, int first)
{
    const u8 *block = row + first / BLOCK * (i64)Q8_0_BYTES;
    take(c->word, block + 2 + first % BLOCK);
    c->word[0] ^= 0x80808080;
    c->word[1] ^= 0x80808080;
    c->less = 128.0f;
    c->scale = load_scale(block);
}

/* Types of 32 with codes of 4 bits in the last 16 bytes of a block, fifth bits before them. */
FUNC void take_32(struct codes *c, const u8 *row, int first, int bytes, int has_offset,
                  int has_fifths)
{
    const u8 *block = row + first / BLOCK * (i64)bytes;
    const int in = first % BLOCK;
    take_halves(c, block + bytes - 16 + in % 16, in / 16 * 4);
    if (has_fifths)
        add_fifths(c, block[bytes - 20 + in / 8]);
    c->scale = load_scale(block);
    if (has_offset)
        c->offset = load_scale(block + 2);
    else
        c->less = has_fifths ? 16.0f : 8.0f;
}

/* The scale and the minimum of a run of q4_K or q5_K. */
FUNC void take_shares(struct codes *c, const u8 *block, int run)
{
    c->scale = load_scale(block) * share_of_scale(block + 4, run);
    c->offset = -(load_scale(block + 2) * share_of_minimum(block + 4, run));
}

FUNC void take_q4_K(struct codes *c, const u8 *row, int first)
{
    const u8 *block = row + first / SUPER * (i64)Q4_K_BYTES;
    const int run = first % SUPER / BLOCK;
    take_halves(c, block + 16 + run / 2 * BLOCK + first % BLOCK, run % 2 * 4);
    take_shares(c, block, run);
}

FUNC void take_q5_K(struct codes *c, const u8 *row, int first)
{
    const u8 *block = row + first / SUPER * (i64)Q5_K_BYTES;
    const int run = first % SUPER / BLOCK;
    take_halves(c, block + 48 + run / 2 * BLOCK + first % BLOCK, run % 2 * 4);
    take_upper(c, block + 16 + first % BLOCK, run, 0x01010101);
    take_shares(c, block, run);
}

FUNC void take_q6_K(struct codes *c, const u8 *row, int first)
{
    const u8 *block = row + first / SUPER * (i64)Q6_K_BYTES;
    const int run = first % SUPER / BLOCK, in = first % BLOCK;
    take_halves(c, block + run / 4 * 64 + run % 2 * BLOCK + in, run % 4 / 2 * 4);
    take_upper(c, block + 128 + run / 4 * BLOCK + in, run % 4 * 2, 0x03030303);
    c->less = 32.0f;
    c->scale = load_scale(block + 208) * (float)(i8)block[192 + first % SUPER / 16];
}

FUNC void take_codes(struct codes *c, const u8 *row, int type, int first)
{
    switch (type) {
    case STORAGE_Q8_0:
        take_q8_0(c, row, first);
        break;
    case STORAGE_Q4_0:
        take_32(c, row, first, Q4_0_BYTES, 0, 0);
        break;
    case STORAGE_Q4_1:
        take_32(c, row, first, Q4_1_BYTES, 1, 0);
        break;
    case STORAGE_Q5_0:
        take_32(c, row, first, Q5_0_BYTES, 0, 1);
        break;
    case STORAGE_Q5_1:
        take_32(c, row, first, Q5_1_BYTES, 1, 1);
        break;
    case STORAGE_Q4_K:
        take_q4_K(c, row, first);
        break;
    case STORAGE_Q5_K:
        take_q5_K(c, row, first);
        break;
    case STORAGE_Q6_K:
        take_q6_K(c, row, first);
        break;
    }
}

/* A byte in the last bits of 2^23 is the sum of both: that takes an eighth of the time of a
 * conversion. */
FUNC float number_of(const struct codes *c, int i)
{
    const float large = 8388608.0f;
    const u32 which = 0x7650 + i % 4;
    const float code = f32_of_bits(permute(c->word[i / 4], bits_of_f32(large), which));
    return (code - (large + c->less)) * c->scale + c->offset;
}

FUNC void take_blocks(float *to, const u8 *row, int type, int first)
{
    struct codes c = { { 0, 0 }, 0.0f, 0.0f, 0.0f };
    take_codes(&c, row, type, first);
    UNROLL for (int i = 0; i < CONVERT_NUMBERS; i++) to[i] = number_of(&c, i);
}

FUNC void take_pairs(float *to, const u8 *row, int type, int first)
{
    const struct quad q = load_quad((u64)row + first * 2);
    UNROLL for (int i = 0; i < CONVERT_NUMBERS; i++)
    {
        const u16 half = (u16)(q.v[i / 2] >> i % 2 * 16);
        to[i] = type == STORAGE_F16 ? f32_of_f16(half) : f32_of_bf16(half);
    }
}

/* ---- the row ---- */

template <int TYPE> FUNC void put(u64 row, int first, const float *v)
{
    struct quad q;
    if (TYPE == STORAGE_F32) {
        UNROLL for (int half = 0; half < CONVERT_NUMBERS; half += 4)
        {
            UNROLL for (int i = 0; i < 4; i++) q.v[i] = bits_of_f32(v[half + i]);
            store_quad(row + (first + half) * (i64)4, q);
        }
    } else {
        UNROLL for (int i = 0; i < 4; i++) q.v[i] = pair_of<TYPE>(v[2 * i], v[2 * i + 1]);
        store_quad(row + first * (i64)2, q);
    }
}

template <int TYPE> FUNC void convert(const struct convert_args &s)
{
    const u8 *from = (const u8 *)s.from + group_id() * s.from_stride;
    const u64 to = s.to + group_id() * s.to_stride;
    const int step = local_count() * CONVERT_NUMBERS;
    float v[CONVERT_NUMBERS];
    for (int first = local_id() * CONVERT_NUMBERS; first < s.k; first += step) {
        if (s.type == STORAGE_F16 || s.type == STORAGE_BF16)
            take_pairs(v, from, s.type, first);
        else
            take_blocks(v, from, s.type, first);
        put<TYPE>(to, first, v);
    }
}

#define X(TYPE, type)                                                                      \
    KERNEL(convert_##type)(struct convert_args s)                                          \
    {                                                                                      \
        convert<STORAGE_##TYPE>(s);                                                        \
    }
X(F32, f32)
X(F16, f16)
X(BF16, bf16)
#undef X
