/* SPDX-License-Identifier: MIT */
/* tile_codes.h - codes of a row of b as operands of the matrix units: of 32 numbers, a lane has
 * four from 4 * t on, and four from 16 + 4 * t on, t being its place among four lanes that share
 * the row. Follows gemv_row.h and cell_words.h. */
#ifndef CUDA_KERNELS_TILE_CODES_H
#define CUDA_KERNELS_TILE_CODES_H

/* Twice 32 neighbours of a row, runs. A number is code * scale + offset, and codes have a sign; of
 * q6_K, each half of a run has its scale. */
struct codes {
    u32 code[2][2];
    float scale[2][2], offset[2];
};

#define HAS_HALVES(type) ((type) == STORAGE_Q6_K)
#define HAS_MINIMA(type)                                                                   \
    ((type) == STORAGE_Q4_1 || (type) == STORAGE_Q5_1 || (type) == STORAGE_Q4_K ||         \
     (type) == STORAGE_Q5_K)

/* What a code that is raised, so that it has a sign, is worth. */
#define CODE_UNIT(type)                                                                    \
    ((type) == STORAGE_Q4_0   ? 0.0625f                                                    \
     : (type) == STORAGE_Q5_0 ? 0.125f                                                     \
     : (type) == STORAGE_Q6_K ? 0.25f                                                      \
                              : 1.0f)

/* Two blocks of 34 bytes; the second one's codes begin at a whole word. */
FUNC void take_q8_0(struct codes *c, const u8 *row, int pair, int t)
{
    const u32 *words = (const u32 *)row + pair * 17;
    UNROLL for (int half = 0; half < 2; half++)
    {
        c->code[0][half] = straddling(words + half * 4 + t);
        c->code[1][half] = words[9 + half * 4 + t];
    }
    c->scale[0][0] = half_of(words[0]);
    c->scale[1][0] = half_of(words[8] >> 16);
}

/* Codes less 8, times 16: so they have a sign. */
FUNC void take_q4_0(struct codes *c, const u8 *row, int pair, int t)
{
    const u32 *words = (const u32 *)row + pair * 9;
    const u32 codes[2] = { straddling(words + t), words[5 + t] };
    UNROLL for (int run = 0; run < 2; run++)
    {
        c->code[run][0] = (codes[run] << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
        c->code[run][1] = (codes[run] & 0xf0f0f0f0u) ^ 0x80808080u;
    }
    c->scale[0][0] = half_of(words[0]);
    c->scale[1][0] = half_of(words[4] >> 16);
}

FUNC void take_q4_1(struct codes *c, const u8 *row, int pair, int t)
{
    UNROLL for (int run = 0; run < 2; run++)
    {
        const u32 *words = (const u32 *)row + (pair * 2 + run) * 5;
        c->code[run][0] = low_nibbles(words[1 + t]);
        c->code[run][1] = high_nibbles(words[1 + t]);
        c->scale[run][0] = half_of(words[0]);
        c->offset[run] = half_of(words[0] >> 16);
    }
}

/* Codes less 16, times 8. */
FUNC void take_q5_0(struct codes *c, const u8 *row, int pair, int t)
{
    const u32 *words = (const u32 *)row + pair * 11;
    const u32 codes[2] = { straddling(words + 1 + t), words[7 + t] };
    const u32 fifths[2] = { straddling(words), words[6] };
    UNROLL for (int run = 0; run < 2; run++)
    {
        const u32 low = low_nibbles(codes[run]) | fifths_of(fifths[run], 4 * t);
        const u32 high = high_nibbles(codes[run]) | fifths_of(fifths[run], 16 + 4 * t);
        c->code[run][0] = low << 3 ^ 0x80808080u;
        c->code[run][1] = high << 3 ^ 0x80808080u;
    }
    c->scale[0][0] = half_of(words[0]);
    c->scale[1][0] = half_of(words[5] >> 16);
}

FUNC void take_q5_1(struct codes *c, const u8 *row, int pair, int t)
{
    UNROLL for (int run = 0; run < 2; run++)
    {
        const u32 *words = (const u32 *)row + (pair * 2 + run) * 6;
        c->code[run][0] = low_nibbles(words[2 + t]) | fifths_of(words[1], 4 * t);
        c->code[run][1] = high_nibbles(words[2 + t]) | fifths_of(words[1], 16 + 4 * t);
        c->scale[run][0] = half_of(words[0]);
        c->offset[run] = half_of(words[0] >> 16);
    }
}

/* 256 numbers have two f16 factors, 8 scales and 8 minima of 6 bits in 12 bytes. */
FUNC void take_shares(struct codes *c, const u8 *block, int pair)
{
    const struct quad head = *(const struct quad *)block;
    const u32 *small = head.v + 1;
    const int shift = pair % 2 * 16;
    const u32 scales = (pair < 2 ? small[0] & 0x3f3f3f3fu
                                 : low_nibbles(small[2]) | (small[0] >> 2 & 0x30303030u)) >>
                       shift;
    const u32 minima = (pair < 2
                            ? small[1] & 0x3f3f3f3fu
                            : high_nibbles(small[2]) | (small[1] >> 2 & 0x30303030u)) >>
                       shift;
    const float scale = half_of(head.v[0]), minimum = -half_of(head.v[0] >> 16);
    UNROLL for (int run = 0; run < 2; run++)
    {
        c->scale[run][0] = scale * (float)(scales >> (run * 8) & 255);
        c->offset[run] = minimum * (float)(minima >> (run * 8) & 255);
    }
}

/* Then 128 bytes of codes. */
FUNC void take_q4_K(struct codes *c, const u8 *row, int pair, int t)
{
    const u32 *words = (const u32 *)(row + 16 + pair * 32);
    UNROLL for (int half = 0; half < 2; half++)
    {
        c->code[0][half] = low_nibbles(words[half * 4 + t]);
        c->code[1][half] = high_nibbles(words[half * 4 + t]);
    }
    take_shares(c, row, pair);
}

/* Then 32 bytes with fifth bits, and 128 bytes of codes. */
FUNC void take_q5_K(struct codes *c, const u8 *row, int pair, int t)
{
    const u32 *fifths = (const u32 *)(row + 16),
              *words = (const u32 *)(row + 48 + pair * 32);
    UNROLL for (int half = 0; half < 2; half++)
    {
        const u32 two = fifths[half * 4 + t] >> (pair * 2), codes = words[half * 4 + t];
        c->code[0][half] = low_nibbles(codes) | (two & 0x01010101u) << 4;
        c->code[1][half] = high_nibbles(codes) | (two & 0x02020202u) << 3;
    }
    take_shares(c, row, pair);
}

/* 128 bytes with the low 4 bits of codes, 64 with the high 2 bits, 16 scales of 8 bits, and an f16
 * factor. Codes less 32, times 4. */
FUNC void take_q6_K(struct codes *c, const u8 *row, int pair, int t)
{
    const u8 *low = row + pair / 2 * 64 + t * 4, *high = row + 128 + pair / 2 * 32 + t * 4;
    const i8 *shares = (const i8 *)row + 192 + pair * 4;
    const float scale = f32_of_f16(*(const u16 *)(row + 208));
    UNROLL for (int run = 0; run < 2; run++) UNROLL for (int half = 0; half < 2; half++)
    {
        const u32 four = word_at(low + run * 32 + half * 16) >> (pair % 2 * 4);
        const u32 two = word_at(high + half * 16) >> (pair % 2 * 4 + run * 2);
        c->code[run][half] = (low_nibbles(four) << 2 | (two & 0x03030303u) << 6) ^
                             0x80808080u;
        c->scale[run][half] = scale * (float)shares[run * 2 + half];
    }
}

/* Of the pairs of runs of a cell, the one that is number `pair`. */
template <int TYPE> FUNC void take_pair(struct codes *c, const u8 *row, int pair, int t)
{
    if (TYPE == STORAGE_Q8_0)
        take_q8_0(c, row, pair, t);
    else if (TYPE == STORAGE_Q4_0)
        take_q4_0(c, row, pair, t);
    else if (TYPE == STORAGE_Q4_1)
        take_q4_1(c, row, pair, t);
    else if (TYPE == STORAGE_Q5_0)
        take_q5_0(c, row, pair, t);
    else if (TYPE == STORAGE_Q5_1)
        take_q5_1(c, row, pair, t);
    else if (TYPE == STORAGE_Q4_K)
        take_q4_K(c, row, pair, t);
    else if (TYPE == STORAGE_Q5_K)
        take_q5_K(c, row, pair, t);
    else
        take_q6_K(c, row, pair, t);
}

#endif
