/* SPDX-License-Identifier: MIT */
/* block_halves.h - blocks of b as f16 in registers, operands of the matrix units. Of each 16
 * numbers of a row, the lane that has place t among four has 4 t and 4 t + 2 in one word, and 4
 * t + 1 and 4 t + 3 in another: a product has these in the places 2 t, 2 t + 1, 2 t + 8 and 2 t
 * + 9. Rows of a have their numbers in that order, too (convert_round_mixed of
 * matmul_convert.cu).
 *
 * Each number is computed as convert_f16 does it: (code - less) * scale + offset, rounded once.
 * Rows begin at whole words of shared memory. Follows cell_words.h and pairs.h. */
#ifndef CUDA_KERNELS_BLOCK_HALVES_H
#define CUDA_KERNELS_BLOCK_HALVES_H

/* Of 64 neighbours of a row, runs of 32: two words of 16 numbers each, by run and half of it. */
struct halves {
    u32 v[2][2][2];
};

/* ---- two f16 in a word ---- */

FUNC u32 add_halves(u32 a, u32 b)
{
    u32 v;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

FUNC u32 multiply_halves(u32 a, u32 b)
{
    u32 v;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

FUNC u32 multiply_add_halves(u32 a, u32 b, u32 c)
{
    u32 v;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c));
    return v;
}

FUNC u32 low_twice(u32 word)
{
    u32 v;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {l, l}; }"
        : "=r"(v)
        : "r"(word));
    return v;
}

FUNC u32 high_twice(u32 word)
{
    u32 v;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, h}; }"
        : "=r"(v)
        : "r"(word));
    return v;
}

/* (word & mask) | set, in one instruction. */
FUNC u32 masked_with(u32 word, u32 mask, u32 set)
{
    u32 v;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(v) : "r"(word), "r"(mask), "r"(set));
    return v;
}

/* ---- codes times a scale of f16: exact but for that product ---- */

/* Words of two f16: 1024, in whose last bits a code is added to it, and what is subtracted then. */
enum : u32 {
    TWO_1024 = 0x64006400,
    TWO_LESS_1032 = 0xe408e408,
    TWO_LESS_1040 = 0xe410e410,
    TWO_LESS_1152 = 0xe480e480,
    TWO_SIXTEENTH = 0x2c002c00,
    TWO_LESS_72 = 0xd480d480
};

/* Four codes of a byte each; `less`: -1024 and what else is subtracted from them. */
FUNC void scale_bytes(u32 *to, u32 codes, u32 less, u32 scale)
{
    to[0] = multiply_halves(add_halves(permute(codes, TWO_1024, 0x5250), less), scale);
    to[1] = multiply_halves(add_halves(permute(codes, TWO_1024, 0x5351), less), scale);
}

/* Four bytes with codes of two runs, from which 8 is subtracted. */
FUNC void scale_nibbles(u32 (*to)[2], u32 codes, u32 scale)
{
    UNROLL for (int odd = 0; odd < 2; odd++)
    {
        const u32 pair = codes >> odd * 8;
        const u32 low = masked_with(pair, 0x000f000f, TWO_1024);
        const u32 high = masked_with(pair, 0x00f000f0, TWO_1024);
        to[0][odd] = multiply_halves(add_halves(low, TWO_LESS_1032), scale);
        to[1][odd] = multiply_halves(multiply_add_halves(high, TWO_SIXTEENTH, TWO_LESS_72),
                                     scale);
    }
}

/* Two blocks of 34 bytes; the second one's codes begin at a whole word. */
FUNC void halves_of_q8_0(struct halves *to, const u32 *row, int pair, int t)
{
    const u32 *words = row + pair * 17;
    const u32 scale[2] = { low_twice(words[0]), high_twice(words[8]) };
    UNROLL for (int half = 0; half < 2; half++)
    {
        const u32 codes[2] = { straddling(words + half * 4 + t), words[9 + half * 4 + t] };
        UNROLL for (int run = 0; run < 2; run++) scale_bytes(
            to->v[run][half], codes[run] ^ 0x80808080u, TWO_LESS_1152, scale[run]);
    }
}

FUNC void halves_of_q4_0(struct halves *to, const u32 *row, int pair, int t)
{
    const u32 *words = row + pair * 9;
    scale_nibbles(to->v[0], straddling(words + t), low_twice(words[0]));
    scale_nibbles(to->v[1], words[5 + t], high_twice(words[4]));
}

FUNC void halves_of_q5_0(struct halves *to, const u32 *row, int pair, int t)
{
    const u32 *words = row + pair * 11;
    const u32 codes[2] = { straddling(words + 1 + t), words[7 + t] };
    const u32 fifths[2] = { straddling(words), words[6] };
    const u32 scale[2] = { low_twice(words[0]), high_twice(words[5]) };
    UNROLL for (int run = 0; run < 2; run++)
    {
        const u32 low = low_nibbles(codes[run]) | fifths_of(fifths[run], 4 * t);
        const u32 high = high_nibbles(codes[run]) | fifths_of(fifths[run], 16 + 4 * t);
        scale_bytes(to->v[run][0], low, TWO_LESS_1040, scale[run]);
        scale_bytes(to->v[run][1], high, TWO_LESS_1040, scale[run]);
    }
}

/* ---- codes times a scale of f32, and an offset ---- */

#define F32_2_23 8388608.0f

/* Byte i of a word: in the last bits of 2^23 it is the sum of both, and that takes an eighth of the
 * time of a conversion. */
FUNC float byte_of(u32 word, int i, float less)
{
    return f32_of_bits(permute(word, bits_of_f32(F32_2_23), 0x7650u + (u32)i)) -
           (F32_2_23 + less);
}

FUNC void expand_bytes(u32 *to, u32 codes, float less, float scale, float offset)
{
    float v[4];
    UNROLL for (int i = 0; i < 4; i++) v[i] = byte_of(codes, i, less) * scale + offset;
    to[0] = pair_of<STORAGE_F16>(v[0], v[2]);
    to[1] = pair_of<STORAGE_F16>(v[1], v[3]);
}

FUNC void halves_of_q4_1(struct halves *to, const u32 *row, int pair, int t)
{
    UNROLL for (int run = 0; run < 2; run++)
    {
        const u32 *words = row + (pair * 2 + run) * 5;
        const float scale = half_of(words[0]), offset = half_of(words[0] >> 16);
        expand_bytes(to->v[run][0], low_nibbles(words[1 + t]), 0.0f, scale, offset);
        expand_bytes(to->v[run][1], high_nibbles(words[1 + t]), 0.0f, scale, offset);
    }
}

FUNC void halves_of_q5_1(struct halves *to, const u32 *row, int pair, int t)
{
    UNROLL for (int run = 0; run < 2; run++)
    {
        const u32 *words = row + (pair * 2 + run) * 6;
        const float scale = half_of(words[0]), offset = half_of(words[0] >> 16);
        const u32 low = low_nibbles(words[2 + t]) | fifths_of(words[1], 4 * t);
        const u32 high = high_nibbles(words[2 + t]) | fifths_of(words[1], 16 + 4 * t);
        expand_bytes(to->v[run][0], low, 0.0f, scale, offset);
        expand_bytes(to->v[run][1], high, 0.0f, scale, offset);
    }
}

/* 256 numbers have two f16 factors, 8 scales and 8 minima of 6 bits in 12 bytes: those of two runs,
 * as scales and offsets. */
FUNC void shares_of(float *scale, float *offset, const u32 *block, int pair)
{
    const struct quad head = *(const struct quad *)block;
    const u32 *small = head.v + 1;
    const u32 scales = pair < 2 ? small[0] & 0x3f3f3f3fu
                                : low_nibbles(small[2]) | (small[0] >> 2 & 0x30303030u);
    const u32 minima = pair < 2 ? small[1] & 0x3f3f3f3fu
                                : high_nibbles(small[2]) | (small[1] >> 2 & 0x30303030u);
    UNROLL for (int run = 0; run < 2; run++)
    {
        scale[run] = half_of(head.v[0]) * byte_of(scales, pair % 2 * 2 + run, 0.0f);
        offset[run] =
            -(half_of(head.v[0] >> 16) * byte_of(minima, pair % 2 * 2 + run, 0.0f));
    }
}

/* Then 128 bytes of codes. */
FUNC void halves_of_q4_K(struct halves *to, const u32 *row, int pair, int t)
{
    float scale[2], offset[2];
    shares_of(scale, offset, row, pair);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const u32 codes = row[4 + pair * 8 + half * 4 + t];
        expand_bytes(to->v[0][half], low_nibbles(codes), 0.0f, scale[0], offset[0]);
        expand_bytes(to->v[1][half], high_nibbles(codes), 0.0f, scale[1], offset[1]);
    }
}

/* Then 32 bytes with fifth bits, and 128 bytes of codes. */
FUNC void halves_of_q5_K(struct halves *to, const u32 *row, int pair, int t)
{
    float scale[2], offset[2];
    shares_of(scale, offset, row, pair);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const u32 two = row[4 + half * 4 + t] >> (pair * 2);
        const u32 codes = row[12 + pair * 8 + half * 4 + t];
        expand_bytes(to->v[0][half], low_nibbles(codes) | (two & 0x01010101u) << 4, 0.0f,
                     scale[0], offset[0]);
        expand_bytes(to->v[1][half], high_nibbles(codes) | (two & 0x02020202u) << 3, 0.0f,
                     scale[1], offset[1]);
    }
}

/* 128 bytes with the low 4 bits of codes, 64 with the high 2 bits, 16 scales of 8 bits, and an f16
 * factor; from an even address on. */
FUNC void halves_of_q6_K(struct halves *to, const u8 *row, int pair, int t)
{
    const u8 *low = row + pair / 2 * 64 + t * 4, *high = row + 128 + pair / 2 * 32 + t * 4;
    const u32 shares = word_at(row + 192 + pair * 4) ^ 0x80808080u;
    const float scale = f32_of_f16(*(const u16 *)(row + 208));
    UNROLL for (int half = 0; half < 2; half++)
    {
        const u32 two = word_at(high + half * 16) >> (pair % 2 * 4);
        UNROLL for (int run = 0; run < 2; run++)
        {
            const u32 four = word_at(low + run * 32 + half * 16) >> (pair % 2 * 4);
            const u32 codes = low_nibbles(four) | (two >> (run * 2) & 0x03030303u) << 4;
            expand_bytes(to->v[run][half], codes, 32.0f,
                         scale * byte_of(shares, run * 2 + half, 128.0f), 0.0f);
        }
    }
}

/* Of the pairs of runs of a cell, the one that is number `pair`. */
template <int TYPE> FUNC void halves_of(struct halves *to, const u8 *row, int pair, int t)
{
    if (TYPE == STORAGE_Q8_0)
        halves_of_q8_0(to, (const u32 *)row, pair, t);
    else if (TYPE == STORAGE_Q4_0)
        halves_of_q4_0(to, (const u32 *)row, pair, t);
    else if (TYPE == STORAGE_Q4_1)
        halves_of_q4_1(to, (const u32 *)row, pair, t);
    else if (TYPE == STORAGE_Q5_0)
        halves_of_q5_0(to, (const u32 *)row, pair, t);
    else if (TYPE == STORAGE_Q5_1)
        halves_of_q5_1(to, (const u32 *)row, pair, t);
    else if (TYPE == STORAGE_Q4_K)
        halves_of_q4_K(to, (const u32 *)row, pair, t);
    else if (TYPE == STORAGE_Q5_K)
        halves_of_q5_K(to, (const u32 *)row, pair, t);
    else
        halves_of_q6_K(to, row, pair, t);
}

#endif
