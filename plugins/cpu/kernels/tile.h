/* SPDX-License-Identifier: MIT */
/* tile.h - products of tiles in registers, and conversion of the operands: a to rows of f32,
 * TILE_PITCH apart, b to panels of PANEL_COLS columns (pack.h). The last panel is padded with
 * zeros. */
#ifndef CPU_TILE_H
#define CPU_TILE_H

#include "words.h"

/* If the processor multiplies pairs of bf16, a text compiled for that does nothing else: all panels
 * are bf16, and words of a's rows are pairs. Elsewhere words are single numbers. */
#if defined(HAS_PAIRS)
enum { PAIRS = 1 };
#else
enum { PAIRS = 0 };

INLINE vf vf_add_pairs(vf sum, float x, vf v)
{
    return vf_fma(vf_set(x), v, sum);
}

INLINE void vf_store_pairs(uint16_t *p, vf v)
{
    vf_store_bf16(p, v);
}
#endif

enum {
    PANEL_COLS = PACKED_ROWS,
    PARTS = PANEL_COLS / LANES, /* vectors of a panel */
#if defined(__AVX512F__)
    /* of TILE_VECS sums each; b's vectors and one of a need registers, too */
    TILE_ROWS = 14,
    TILE_PANELS = 2,
    TILE_WORDS = 384, /* TILE_ROWS of this length stay in the first-level cache */
#else
    TILE_ROWS = 6,
    TILE_PANELS = 1,
    TILE_WORDS = 256,
#endif
    TILE_VECS = TILE_PANELS * PARTS,
    TILE_COLS = TILE_PANELS * PANEL_COLS,
    /* An odd number of lines: otherwise rows would map to the same sets of the cache. */
    TILE_PITCH = TILE_WORDS + 16,
    IN_WORD = 1 + PAIRS,               /* numbers of a row of a */
    TILE_DEPTH = TILE_WORDS * IN_WORD, /* along k */
    /* With few rows of a, memory is slower than their products: more panels are read at once, so
     * that the processor sees more streams. */
    WIDE_ROWS = LANES == 16 ? 6 : 2,
    WIDE_PANELS = 2 * TILE_PANELS,
    /* Prefetch distances in bytes: a panel, into the first-level cache; */
    TILE_SOON = 2048,
    WIDE_SOON = 1024, /* with few rows, into the second-level cache; */
    COLD_SOON = 4096, /* f32 that no row has read yet; */
    COPY_SOON = 256,  /* of a row that is copied; */
    COPY_ROWS = 4,    /* rows */
    RUN_WORDS = 16    /* how often a tile prefetches lines of c and of the next data */
};

/* ---- the product ---- */

/* The next data in memory: `left` lines, `each` at a time. Requesting all at once would delay the
 * lines of b. */
struct ahead {
    const char *at;
    int64_t stride, lines; /* of a row; the number of lines in it */
    int64_t line, left, each;
};

INLINE void ask_ahead(struct ahead *next)
{
    for (int64_t i = 0; i < next->each && next->left > 0; i++, next->left--) {
        ASK_FOR(next->at, next->line * 64, 2);
        if (++next->line == next->lines) {
            next->line = 0;
            next->at += next->stride;
        }
    }
}

struct tile {
    const float *a;             /* `rows` rows */
    const char *b[WIDE_PANELS]; /* panels */
    float *c;                   /* floats of each row, `stride` floats apart */
    int64_t depth, stride;
    int rows;
    bool more; /* adds to c */
    bool cold; /* panels come from memory */
    /* WIDE_PANELS: the prefetch distance in bytes, and its increase per line */
    int64_t soon, later;
    struct ahead *next; /* NULL: there is nothing to prefetch */
};

/* Prefetches, in run number `run` of a tile, the lines of one row of c. */
INLINE void ask_for_sums(const struct tile *t, int64_t run)
{
    if (run < t->rows)
        EACH (v, TILE_VECS * LANES * 4 / 64)
            ASK_FOR(t->c + run * t->stride, v * 64, 3);
}

/* The bytes of a panel's numbers for one k. In bf16, a line has the numbers of two k. */
INLINE int panel_step(int type)
{
    return PANEL_COLS * (type == HW_F32 ? 4 : 2);
}

/* The number of words of a's rows that a line of a panel is multiplied by. */
INLINE int in_line(int type)
{
    return type == HW_F32 || PAIRS ? 1 : 2;
}

/* A vector of the line at `at`; `second`: for the second k of 16 bits. */
INLINE vf panel_vector(int type, const char *at, int part, bool second)
{
    if (type == HW_F32 || PAIRS)
        return vf_load((const float *)(const void *)at + part * LANES);
    if (type == HW_F16)
        return vf_load_f16((const uint16_t *)(const void *)at + part * LANES +
                           (second ? PANEL_COLS : 0));
    vi pairs = vi_load(at + part * LANES * PACKED_WORDS);
    if (second)
        pairs &= vi_set((int32_t)0xffff0000);
    else
        pairs = vi_shl(pairs, 16);
    return vf_of_bits(pairs);
}

/* The products of one k, or of a pair: numbers of a line of b times the first words of rows of
 * a. */
INLINE void add_products(int type, int rows, int panels, const char *const *b, bool second,
                         const float *a, vf *sum)
{
    const int vectors = panels * PARTS;
    vf w[WIDE_PANELS * PARTS];
    EACH (v, vectors)
        w[v] = panel_vector(type, b[v / PARTS], v % PARTS, second);
    EACH (y, rows) {
        const float x = a[y * TILE_PITCH];
        EACH (v, vectors)
            sum[y * vectors + v] = vf_add_pairs(sum[y * vectors + v], x, w[v]);
    }
}

INLINE void tile_rows(int type, int rows, int panels, const struct tile *t)
{
    const int steps = in_line(type), vectors = panels * PARTS;
    const int64_t words = (t->depth + IN_WORD - 1) / IN_WORD;
    const char *b[WIDE_PANELS];
    vf sum[(WIDE_ROWS * 2 > TILE_ROWS ? WIDE_ROWS * 2 : TILE_ROWS) * TILE_VECS];
    int64_t k = 0, soon = t->soon;
    EACH (i, rows * vectors)
        sum[i] = vf_set(0);
    EACH (p, panels)
        b[p] = t->b[p];
    while (k + steps <= words) {
        const int64_t end = words - k < RUN_WORDS ? words : k + RUN_WORDS;
        if (t->next) {
            ask_for_sums(t, k / RUN_WORDS);
            ask_ahead(t->next);
        }
        for (; k + steps <= end; k += steps) {
            EACH (p, panels)
                if (panels == WIDE_PANELS)
                    ASK_FOR(b[p], soon, 2);
                else if (type == HW_F32 && t->cold)
                    ASK_FOR(b[p], COLD_SOON, 2);
                else
                    ASK_FOR(b[p], TILE_SOON, 3);
            EACH (step, steps)
                add_products(type, rows, panels, b, step, t->a + k + step, sum);
            EACH (p, panels)
                b[p] += PACKED_LINE;
            soon += t->later;
        }
    }
    if (k < words)
        add_products(type, rows, panels, b, false, t->a + k, sum);
    EACH (y, rows)
        EACH (v, vectors) {
            float *c = t->c + y * t->stride + v * LANES;
            vf s = sum[y * vectors + v];
            if (t->more)
                s += vf_load(c);
            vf_store(c, s);
        }
}

INLINE void tile_of(int type, const struct tile *t)
{
#define ROWS(n)                                                                            \
    case n:                                                                                \
        tile_rows(type, n, TILE_PANELS, t);                                                \
        return;
    switch (t->rows) {
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
#if defined(__AVX512F__)
        ROWS(7)
        ROWS(8)
        ROWS(9)
        ROWS(10)
        ROWS(11)
        ROWS(12)
        ROWS(13)
        ROWS(14)
#endif
    }
#undef ROWS
}

INLINE void wide_tile_of(int type, const struct tile *t)
{
#define ROWS(n)                                                                            \
    case n:                                                                                \
        tile_rows(type, n, WIDE_PANELS, t);                                                \
        return;
    switch (t->rows) {
        ROWS(1)
        ROWS(2)
#if defined(__AVX512F__)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
#endif
    }
#undef ROWS
}

/* c = a . b, or c += a . b, for 1 .. TILE_ROWS rows and TILE_PANELS panels of `type`. The sums of a
 * row do not depend on the number of rows. */
static void tile_multiply(int type, const struct tile *t)
{
    if (PAIRS)
        tile_of(HW_BF16, t);
    else if (type == HW_F32)
        tile_of(HW_F32, t);
    else if (type == HW_F16)
        tile_of(HW_F16, t);
    else
        tile_of(HW_BF16, t);
}

/* Like tile_multiply(), for 1 .. WIDE_ROWS rows and WIDE_PANELS panels. */
static void wide_tile_multiply(int type, const struct tile *t)
{
    if (PAIRS)
        wide_tile_of(HW_BF16, t);
    else if (type == HW_F32)
        wide_tile_of(HW_F32, t);
    else if (type == HW_F16)
        wide_tile_of(HW_F16, t);
    else
        wide_tile_of(HW_BF16, t);
}

/* ---- operands ---- */

/* A part of an operand as stored: `rows` rows of `cols` elements. */
struct block {
    const char *from;
    int64_t stride, rows, cols;
};

/* Copies rows, padding each with zeros to `width` floats; `width` is at least `cols`. */
INLINE void copy_block(int type, const struct block *b, float *to, int64_t pitch,
                       int64_t width)
{
    for (int64_t row = 0; row < b->rows; row++) {
        const char *from = b->from + row * b->stride;
        int64_t i = 0;
        for (; i + LANES <= b->cols; i += LANES)
            vf_store(to + row * pitch + i, vf_load_as(type, from, i));
        for (; i < width; i += LANES) {
            const int64_t n = b->cols - i > 0 ? b->cols - i : 0;
            vf_store(to + row * pitch + i,
                     n ? vf_load_part_as(type, from, i, n) : vf_set(0));
        }
    }
}

/* Copies rows to panels, `panel` floats apart, padding each with zeros to `width` columns; `width`
 * is at least `cols`. */
INLINE void spread_block(int type, const struct block *b, float *to, int64_t panel,
                         int64_t width)
{
    const int bytes = type == HW_F32 ? 4 : 2;
    for (int64_t row = 0; row < b->rows; row++) {
        const char *from = b->from + row * b->stride;
        for (int64_t i = 0; i < width; i += LANES) {
            const int64_t left = b->cols - i;
            float *place = to + i / PANEL_COLS * panel + row * PANEL_COLS + i % PANEL_COLS;
            ASK_FOR(from, COPY_ROWS * b->stride + i * bytes, 3);
            vf_store(place, left >= LANES ? vf_load_as(type, from, i)
                            : left > 0    ? vf_load_part_as(type, from, i, left)
                                          : vf_set(0));
        }
    }
}

/* Copies a block whose rows are the columns of `to`. Pads each row of `to` with zeros to `width`
 * floats, at least the block's number of rows. Prefetches: LANES streams are too many for the
 * processor. */
INLINE void turn_block(int type, const struct block *b, float *to, int64_t pitch,
                       int64_t width)
{
    const int64_t bytes = type == HW_F32 ? 4 : 2, soon = COPY_SOON / bytes;
    for (int64_t row = 0; row < width; row += LANES)
        for (int64_t i = 0; i < b->cols; i += LANES) {
            const int64_t left = b->cols - i < LANES ? b->cols - i : LANES;
            /* near the end, of the rows that come next */
            const int64_t ahead = i + soon < b->cols
                                      ? COPY_SOON
                                      : LANES * b->stride + COPY_SOON - b->cols * bytes;
            vf v[LANES];
            EACH (r, LANES) {
                const char *from = b->from + (row + r < b->rows ? row + r : 0) * b->stride;
                ASK_FOR(from, i * bytes + ahead, 3);
                v[r] = row + r >= b->rows ? vf_set(0)
                       : left == LANES    ? vf_load_as(type, from, i)
                                          : vf_load_part_as(type, from, i, left);
            }
            vf_transpose(v);
            EACH (r, LANES)
                if (r < left)
                    vf_store(to + (i + r) * pitch + row, v[r]);
        }
}

INLINE void place_block(int type, bool turn, const struct block *b, float *to,
                        int64_t pitch, int64_t width)
{
    if (turn)
        turn_block(type, b, to, pitch, width);
    else
        copy_block(type, b, to, pitch, width);
}

/* Either of both, for floats of any type. */
static void take_block(int type, bool turn, const struct block *b, float *to, int64_t pitch,
                       int64_t width)
{
    if (type == HW_F32)
        place_block(HW_F32, turn, b, to, pitch, width);
    else if (type == HW_F16)
        place_block(HW_F16, turn, b, to, pitch, width);
    else
        place_block(HW_BF16, turn, b, to, pitch, width);
}

/* Rows to pairs of bf16, with zeros at the end. */
static void pair_rows(int type, const struct block *b, float *to, int64_t pitch)
{
    for (int64_t row = 0; row < b->rows; row++) {
        const char *from = b->from + row * b->stride;
        uint16_t *pairs = (uint16_t *)(void *)(to + row * pitch);
        int64_t i = 0;
        for (; i + LANES <= b->cols; i += LANES)
            vf_store_pairs(pairs + i, vf_load_as(type, from, i));
        if (i < b->cols)
            vf_store_pairs(pairs + i, vf_load_part_as(type, from, i, b->cols - i));
    }
}

/* Rows of floats of any type to panels. */
static void spread(int type, const struct block *b, float *to, int64_t panel, int64_t width)
{
    if (type == HW_F32)
        spread_block(HW_F32, b, to, panel, width);
    else if (type == HW_F16)
        spread_block(HW_F16, b, to, panel, width);
    else
        spread_block(HW_BF16, b, to, panel, width);
}

/* Widens a panel of 16 bits to f32, `depth` numbers along K. */
INLINE void widen_lines(int type, const char *from, float *to, int64_t depth)
{
    for (int64_t k = 0; k < depth; k++, to += PANEL_COLS) {
        ASK_FOR(from, TILE_SOON, 3);
        EACH (part, PARTS)
            vf_store(to + part * LANES, panel_vector(type, from, part, k % 2));
        from += k % 2 * PACKED_LINE;
    }
}

static void widen_panel(int type, const char *from, float *to, int64_t depth)
{
    if (type == HW_F16)
        widen_lines(HW_F16, from, to, depth);
    else
        widen_lines(HW_BF16, from, to, depth);
}

#endif
