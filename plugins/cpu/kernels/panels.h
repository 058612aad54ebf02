/* SPDX-License-Identifier: MIT */
/* panels.h - packing (pack.h) in vectors, for weights that are not packed yet: rows of GGML's
 * blocks become a panel, in about the time of multiplying it by four rows of a.
 *
 * Sixteen bytes of each row, four words of codes, are loaded at once and transposed, so that a line
 * has the same word of all rows. */
#ifndef CPU_PANELS_H
#define CPU_PANELS_H

#include "blocktypes.h"

enum {
    LINE_PARTS = PACKED_ROWS / LANES,  /* vectors of a line */
    PIECE = 4,                         /* words that are transposed at once */
    PIECE_BYTES = PIECE * PACKED_WORDS /* of a row */
};

/* A line: a word of each row. */
struct words {
    vi part[LINE_PARTS];
};

/* Blocks of 16 rows, `stride` bytes apart. */
struct rows {
    const uint8_t *at;
    int64_t stride;
};

/* ---- lines ---- */

/* The four words that begin at byte `at` of each block. */
INLINE void load_lines(struct words *line, struct rows b, int at)
{
    EACH (p, LINE_PARTS) {
        vi v[PIECE];
        EACH (i, PIECE)
            v[i] = vi_load_pieces(b.at + (p * LANES + i) * b.stride + at, PIECE * b.stride);
        vi_transpose(v);
        EACH (i, PIECE)
            line[i].part[p] = v[i];
    }
}

INLINE uint8_t *put_line(uint8_t *to, const struct words *line)
{
    EACH (p, LINE_PARTS)
        vi_store(to + p * LANES * PACKED_WORDS, line->part[p]);
    return to + PACKED_LINE;
}

/* Byte `byte` of each row's word. */
INLINE uint8_t *put_bytes(uint8_t *to, const struct words *line, int byte)
{
    EACH (p, LINE_PARTS)
        vi_store_i8((int8_t *)to + p * LANES,
                    vi_sra(vi_shl(line->part[p], 24 - 8 * byte), 24));
    return to + PACKED_ROWS;
}

INLINE uint8_t *put_f16s(uint8_t *to, struct rows b, int at)
{
    EACH (r, PACKED_ROWS)
        memcpy(to + 2 * r, b.at + r * b.stride + at, 2);
    return to + PACKED_SCALES;
}

/* ---- codes of types whose runs are blocks ---- */

/* Stores four words with the bits of `flip` inverted. */
INLINE uint8_t *put_codes(uint8_t *to, struct rows b, int at, int flip)
{
    struct words line[PIECE];
    load_lines(line, b, at);
    EACH (i, PIECE) {
        EACH (p, LINE_PARTS)
            line[i].part[p] ^= vi_set((int32_t)((uint32_t)flip * 0x01010101u));
        to = put_line(to, &line[i]);
    }
    return to;
}

/* Bits 0, 4, 8 .. 28 of each word, next to each other. */
INLINE vi every_fourth(vi word)
{
    word &= vi_set(0x11111111);
    word = (word | vi_shr(word, 3)) & vi_set(0x03030303);
    word = (word | vi_shr(word, 6)) & vi_set(0x000f000f);
    return (word | vi_shr(word, 12)) & vi_set(0xff);
}

/* Reads a 32-bit number with one bit per element. */
INLINE uint8_t *put_fifths(uint8_t *to, struct rows b, int at)
{
    struct words line[PIECE];
    load_lines(line, b, at);
    EACH (p, LINE_PARTS) {
        const vi bits = line[0].part[p];
        line[0].part[p] = vi_set(0);
        EACH (j, PACKED_WORDS)
            line[0].part[p] |= vi_shl(every_fourth(vi_shr(bits, j)), 8 * j);
    }
    return put_line(to, &line[0]);
}

/* ---- runs of K types: their codes lie beside those of other runs, and turn with them ---- */

enum { EIGHT = 2 * PIECE }; /* words of 32 neighbouring codes */

INLINE void load_eight(struct words *line, struct rows b, int at)
{
    load_lines(line, b, at);
    load_lines(line + PIECE, b, at + PIECE_BYTES);
}

/* Stores the 4-bit codes of eight words, from bit `shift` of a byte on, 0 or 4. */
INLINE uint8_t *put_halves(uint8_t *to, const struct words *line, int shift)
{
    const vi low = vi_set(0x0f0f0f0f), high = vi_set((int32_t)0xf0f0f0f0);
    EACH (i, PIECE) {
        struct words both;
        EACH (p, LINE_PARTS) {
            const vi first = line[i].part[p], second = line[PIECE + i].part[p];
            both.part[p] = shift ? (vi_shr(first, 4) & low) | (second & high)
                                 : (first & low) | (vi_shl(second, 4) & high);
        }
        to = put_line(to, &both);
    }
    return to;
}

/* Bytes have n fields, one per run: field j of line i becomes field i of line j. Fields are
 * exchanged between halves of the lines, then between quarters. */
INLINE void turn_fields(struct words *line, int n)
{
    UNROLL
    for (int step = n / 2, bits = 4; step > 0; step /= 2, bits /= 2)
        EACH (i, n)
            EACH (p, LINE_PARTS)
                if (!(i & step)) {
                    vi *a = &line[i].part[p], *b = &line[i + step].part[p];
                    const vi mask = vi_set(0x01010101 * (255 / ((1 << bits) + 1)));
                    const vi other = (vi_shr(*a, bits) ^ *b) & mask;
                    *b ^= other;
                    *a ^= vi_shl(other, bits);
                }
}

/* The 6-bit shares of q4_K and q5_K as bytes: of runs 0 to 3 and 4 to 7, in the scale and in the
 * minimum. The block begins with two f16, then its shares. */
struct shares {
    struct words scale[2], least[2];
};

INLINE void load_shares(struct shares *to, struct rows b)
{
    const vi six = vi_set(0x3f3f3f3f), four = vi_set(0x0f0f0f0f), two = vi_set(0x30303030);
    struct words w[PIECE];
    load_lines(w, b, 0);
    EACH (p, LINE_PARTS) {
        const vi scales = w[1].part[p], leasts = w[2].part[p], rest = w[3].part[p];
        to->scale[0].part[p] = scales & six;
        to->least[0].part[p] = leasts & six;
        to->scale[1].part[p] = (rest & four) | (vi_shr(scales, 2) & two);
        to->least[1].part[p] = (vi_shr(rest, 4) & four) | (vi_shr(leasts, 2) & two);
    }
}

INLINE uint8_t *put_shares(uint8_t *to, const struct shares *s, int run)
{
    return put_bytes(put_bytes(to, &s->scale[run / 4], run % 4), &s->least[run / 4],
                     run % 4);
}

/* ---- units ---- */

INLINE void put_q8_0(uint8_t *to, struct rows b)
{
    to = put_f16s(to, b, 0);
    put_codes(put_codes(to, b, 2, PACKED_FLIP), b, 2 + PIECE_BYTES, PACKED_FLIP);
}

INLINE void put_q4_0(uint8_t *to, struct rows b)
{
    put_codes(put_f16s(to, b, 0), b, 2, 0);
}

INLINE void put_q4_1(uint8_t *to, struct rows b)
{
    put_codes(put_f16s(put_f16s(to, b, 0), b, 2), b, 4, 0);
}

INLINE void put_q5_0(uint8_t *to, struct rows b)
{
    put_codes(put_fifths(put_f16s(to, b, 0), b, 2), b, 6, 0);
}

INLINE void put_q5_1(uint8_t *to, struct rows b)
{
    put_codes(put_fifths(put_f16s(put_f16s(to, b, 0), b, 2), b, 4), b, 8, 0);
}

INLINE void put_q4_K(uint8_t *to, struct rows b)
{
    struct shares s;
    load_shares(&s, b);
    to = put_f16s(put_f16s(to, b, 0), b, 2);
    EACH (two, 4) {
        struct words low[EIGHT];
        load_eight(low, b, 16 + two * 32);
        EACH (r, 2)
            to = put_halves(put_shares(to, &s, two * 2 + r), low, r * 4);
    }
}

INLINE void put_q5_K(uint8_t *to, struct rows b)
{
    struct words fifth[EIGHT];
    struct shares s;
    load_shares(&s, b);
    load_eight(fifth, b, 16);
    turn_fields(fifth, 8);
    to = put_f16s(put_f16s(to, b, 0), b, 2);
    EACH (two, 4) {
        struct words low[EIGHT];
        load_eight(low, b, 48 + two * 32);
        EACH (r, 2) {
            to = put_line(put_shares(to, &s, two * 2 + r), &fifth[two * 2 + r]);
            to = put_halves(to, low, r * 4);
        }
    }
}

INLINE void put_q6_K(uint8_t *to, struct rows b)
{
    struct words share[PIECE]; /* of half a run each, a byte */
    load_lines(share, b, 192);
    to = put_f16s(to, b, 208);
    EACH (four, 2) {
        struct words high[EIGHT], low[2][EIGHT];
        load_eight(high, b, 128 + four * 32);
        EACH (i, 2) {
            turn_fields(high + i * PIECE, PIECE);
            load_eight(low[i], b, four * 64 + i * 32);
        }
        EACH (r, 4) {
            EACH (i, 2)
                to = put_bytes(to, &share[four * 2 + r / 2], r % 2 * 2 + i);
            EACH (i, 2)
                to = put_line(to, &high[i * PIECE + r]);
            to = put_halves(to, low[r % 2], r / 2 * 4);
        }
    }
}

/* ---- panels ---- */

/* Prefetches the blocks of the next panel, in the rows below: sixteen rows are more streams than
 * processors prefetch. If several blocks fit in a line, only one of them requests it. */
INLINE void fetch_below(struct rows b, int bytes, int64_t block)
{
    enum { LINE = 64, TO_SECOND_CACHE = 2 };
    if (bytes < LINE && block % (LINE / bytes))
        return;
    EACH (r, PACKED_ROWS)
        for (int at = 0; at < bytes; at += LINE)
            ASK_FOR(b.at, (PACKED_ROWS + r) * b.stride + at, TO_SECOND_CACHE);
}

#define X(NAME, name, elements, head, run)                                                 \
    static void write_##name(const struct packed_rows *from, uint8_t *panel)               \
    {                                                                                      \
        struct rows b = { from->rows, from->stride };                                      \
        for (int64_t k = 0; k < from->k; k += (elements)) {                                \
            fetch_below(b, (int)hw_dtype_bytes(HW_##NAME), k / (elements));                \
            put_##name(panel, b);                                                          \
            b.at += hw_dtype_bytes(HW_##NAME);                                             \
            panel += (head) + (elements) / PACKED_RUN * (run);                             \
        }                                                                                  \
    }
PACKED_TYPES(X)
#undef X

/* Writes the same bytes as packed_write(), which packs the last rows of a matrix. */
static void write_panel(const struct packed_rows *from, uint8_t *panel)
{
    if (from->count < PACKED_ROWS) {
        packed_write(from, panel);
        return;
    }
    switch (from->dtype) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        write_##name(from, panel);                                                         \
        break;
        PACKED_TYPES(X)
#undef X
    default:
        break;
    }
}

#endif
