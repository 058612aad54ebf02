/* SPDX-License-Identifier: MIT */
/* gemv_codes.h - codes, scales and offsets of blocks in shared memory, as GGML stores them. Follows
 * gemv_row.h and cell_words.h. */
#ifndef CUDA_KERNELS_GEMV_CODES_H
#define CUDA_KERNELS_GEMV_CODES_H

/* ---- codes ---- */

/* Two times 16 codes of a row. A number is code * scale + offset, of types with shares code *
 * share * scale + offset. */
struct unit {
    u32 code[2][4];
    int share[2];
    float scale, offset[2];
};

/* Codes of the second halves are 16 times what they are, without a sign: that saves shifting them.
 * The sums of one plane have room for it. */
#define IS_RAISED(type, planes)                                                            \
    ((planes) == ROUNDED &&                                                                \
     ((type) == STORAGE_Q4_0 || (type) == STORAGE_Q4_1 || (type) == STORAGE_Q4_K))

/* The low and the high halves of bytes. */
template <bool RAISED> FUNC void halve(struct unit *u, const u32 *codes)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        u->code[0][i] = low_nibbles(codes[i]);
        u->code[1][i] = RAISED ? codes[i] & 0xf0f0f0f0u : high_nibbles(codes[i]);
    }
}

/* Codes of 5 bits, whose fifth bits are in one word. */
FUNC void add_fifths(struct unit *u, u32 fifths)
{
    UNROLL for (int i = 0; i < 8; i++) u->code[i / 4][i % 4] |= fifths_of(fifths, i * 4);
}

FUNC void take_q8_0(struct unit *u, const u8 *row, int lane)
{
    u32 words[8];
    row += lane * 34;
    words_at(words, row + 2, 8);
    UNROLL for (int i = 0; i < 8; i++) u->code[i / 4][i % 4] = words[i];
    u->scale = f32_of_f16(*(const u16 *)row);
}

/* Two blocks of 18 bytes are nine words; so it is for 22 bytes. */
template <int WORDS> FUNC u32 take_of_pair(u32 *words, const u8 *row, int lane, int which)
{
    const u32 *pair = (const u32 *)row + lane * (2 * WORDS + 1);
    if (which == 0) {
        UNROLL for (int i = 0; i < WORDS; i++) words[i] = straddling(pair + i);
        return pair[0];
    }
    UNROLL for (int i = 0; i < WORDS; i++) words[i] = pair[WORDS + 1 + i];
    return pair[WORDS] >> 16;
}

/* Codes less 8, times 16: so they are signed bytes. If raised, as they are. */
template <bool RAISED>
FUNC void take_q4_0(struct unit *u, const u8 *row, int lane, int which)
{
    u32 codes[4];
    u->scale = half_of(take_of_pair<4>(codes, row, lane, which));
    if (RAISED) {
        halve<true>(u, codes);
        return;
    }
    u->scale *= 0.0625f;
    UNROLL for (int i = 0; i < 4; i++)
    {
        u->code[0][i] = (codes[i] << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
        u->code[1][i] = (codes[i] & 0xf0f0f0f0u) ^ 0x80808080u;
    }
}

FUNC void take_q5_0(struct unit *u, const u8 *row, int lane, int which)
{
    u32 words[5];
    u->scale = half_of(take_of_pair<5>(words, row, lane, which));
    u->offset[0] = u->offset[1] = -16.0f * u->scale;
    halve<false>(u, words + 1);
    add_fifths(u, words[0]);
}

template <bool RAISED> FUNC void take_q4_1(struct unit *u, const u8 *row, int lane)
{
    const u32 *words = (const u32 *)(row + lane * 20);
    u->scale = half_of(words[0]);
    u->offset[0] = u->offset[1] = half_of(words[0] >> 16);
    halve<RAISED>(u, words + 1);
}

FUNC void take_q5_1(struct unit *u, const u8 *row, int lane)
{
    const u32 *words = (const u32 *)(row + lane * 24);
    u->scale = half_of(words[0]);
    u->offset[0] = u->offset[1] = half_of(words[0] >> 16);
    halve<false>(u, words + 2);
    add_fifths(u, words[1]);
}

/* Four lanes share 256 numbers: two f16 factors, 8 scales and 8 minima of 6 bits in 12 bytes.
 * Here the block begins at a multiple of 16. */
FUNC void take_shares(struct unit *u, const u8 *block, int lane)
{
    const int shift = lane % 2 * 16;
    const u32 late = (u32)((int)((u32)lane << 30) >> 31); /* all bits, of the last two */
    const u32 high = 0x3030u & late, low = 0x3f3fu & ~high;
    const struct quad head = *(const struct quad *)block;
    const u32 *small = head.v + 1;
    const u32 scales = (((small[0] & ~late) | (small[2] & late)) >> shift & low) |
                       (small[0] >> (shift + 2) & high);
    const u32 minima = (((small[1] & ~late) | (small[2] >> 4 & late)) >> shift & low) |
                       (small[1] >> (shift + 2) & high);
    u->scale = half_of(head.v[0]);
    const float minimum = -half_of(head.v[0] >> 16);
    UNROLL for (int half = 0; half < 2; half++)
    {
        u->share[half] = (int)(scales >> (half * 8) & 255);
        u->offset[half] = minimum * (float)(minima >> (half * 8) & 255);
    }
}

/* Then 128 bytes of codes. What both units of a lane share is in the first one. */
template <bool RAISED>
FUNC void take_q4_K(struct unit *u, const u8 *row, int lane, int which)
{
    row += lane / 4 * 144;
    const struct quad codes = *(const struct quad *)(row + 16 + lane % 4 * 32 + which * 16);
    halve<RAISED>(u, codes.v);
    if (which == 0)
        take_shares(u, row, lane);
}

/* Then 32 bytes with fifth bits, and 128 bytes of codes. */
FUNC void take_q5_K(struct unit *u, const u8 *row, int lane, int which)
{
    row += lane / 4 * 176;
    const struct quad fifths = *(const struct quad *)(row + 16 + which * 16);
    const struct quad codes = *(const struct quad *)(row + 48 + lane % 4 * 32 + which * 16);
    halve<false>(u, codes.v);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const u32 two = fifths.v[i] >> (lane % 4 * 2);
        u->code[0][i] |= (two & 0x01010101u) << 4;
        u->code[1][i] |= (two & 0x02020202u) << 3;
    }
    if (which == 0)
        take_shares(u, row, lane);
}

/* Eight lanes share 256 numbers: 128 bytes with the low 4 bits of codes, 64 with the high 2 bits,
 * 16 scales of 8 bits, and an f16 factor. */
FUNC void take_q6_K(struct unit *u, const u8 *row, int lane)
{
    row += lane / 8 * 210;
    const int half_block = lane % 8 / 4, piece = lane % 4;
    const i8 *shares = (const i8 *)row + 192 + half_block * 8 + piece;
    u32 low[4], high[4];
    words_at(low, row + half_block * 64 + piece * 16, 4);
    words_at(high, row + 128 + half_block * 32 + piece % 2 * 16, 4);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const u32 top = high[i] >> (piece / 2 * 2);
        u->code[0][i] = low_nibbles(low[i]) | (top & 0x03030303u) << 4;
        u->code[1][i] = high_nibbles(low[i]) | (top & 0x30303030u);
    }
    u->scale = f32_of_f16(*(const u16 *)(row + 208));
    UNROLL for (int half = 0; half < 2; half++)
    {
        u->share[half] = shares[half * 4];
        u->offset[half] = -32.0f * u->scale * (float)u->share[half];
    }
}

/* The unit that a lane has as its first or second one, as spot_of() numbers them. */
template <int TYPE, int PLANES>
FUNC void take_unit(struct unit *u, const u8 *row, int lane, int which)
{
    const bool raised = IS_RAISED(TYPE, PLANES);
    if (!IS_PAIRED(TYPE) && !IS_WIDE(TYPE))
        row += which * (GEMV_STEP_BYTES(TYPE) / GEMV_UNITS(TYPE));
    if (TYPE == STORAGE_Q8_0)
        take_q8_0(u, row, lane);
    else if (TYPE == STORAGE_Q4_0)
        take_q4_0<raised>(u, row, lane, which);
    else if (TYPE == STORAGE_Q4_1)
        take_q4_1<raised>(u, row, lane);
    else if (TYPE == STORAGE_Q5_0)
        take_q5_0(u, row, lane, which);
    else if (TYPE == STORAGE_Q5_1)
        take_q5_1(u, row, lane);
    else if (TYPE == STORAGE_Q4_K)
        take_q4_K<raised>(u, row, lane, which);
    else if (TYPE == STORAGE_Q5_K)
        take_q5_K(u, row, lane, which);
    else
        take_q6_K(u, row, lane);
}

#endif
