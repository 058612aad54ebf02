/* SPDX-License-Identifier: MIT */
/* blocks.h - shared by products with weights of block types: panels (pack.h) as vectors whose lanes
 * are rows of b, and the division of the work into groups.
 *
 * A tile is TILE_ROWS rows of b times some rows of a. The thread that needs unpacked weights packs
 * them, a tile at a time. */
#ifndef CPU_BLOCKS_H
#define CPU_BLOCKS_H

#include "lines.h"
#include "panels.h"

enum {
    PARTS = PACKED_ROWS / LANES,     /* vectors of a panel */
    PANELS = LANES == 16 ? 2 : 1,    /* panels of a tile */
    BESIDE = LANES > 4 ? 4 : PANELS, /* whole panels of a strip: see strip_panels() */
    VECTORS = PANELS * PARTS,        /* vectors of a tile */
    TILE_ROWS = PANELS * PACKED_ROWS /* rows of b */
};

/* ---- types, as constants ---- */

INLINE int unit_elements(int type)
{
#define X(NAME, name, elements, head, run) type == HW_##NAME ? (elements):
    return PACKED_TYPES(X) 0;
#undef X
}

INLINE int head_bytes(int type)
{
#define X(NAME, name, elements, head, run) type == HW_##NAME ? (head):
    return PACKED_TYPES(X) 0;
#undef X
}

INLINE int run_bytes(int type)
{
#define X(NAME, name, elements, head, run) type == HW_##NAME ? (run):
    return PACKED_TYPES(X) 0;
#undef X
}

/* ---- panels ---- */

/* The rows of vector v: how far into each list of 16 numbers. */
INLINE int first_of(int v)
{
    return v % PARTS * LANES;
}

/* The scales or minima of vector v from its panel's list. */
INLINE vf f16s_of(const uint8_t *list, int v)
{
    return vf_load_f16((const uint16_t *)(const void *)list + first_of(v));
}

INLINE vi line_of(const uint8_t *codes, int line, int v)
{
    return vi_load(codes + line * PACKED_LINE + first_of(v) * PACKED_WORDS);
}

/* Codes 4 g to 4 g + 3 of a run. */
INLINE vi codes_of(int type, const uint8_t *codes, int g, int v)
{
    const int bits = code_bits(type), high_lines = bits == 4 ? 0 : bits - 4;
    if (bits == 8)
        return line_of(codes, g, v);
    vi low = line_of(codes, high_lines + g % 4, v);
    low = (g < 4 ? low : vi_shr(low, 4)) & vi_set(0x0f0f0f0f);
    if (bits == 5) {
        const vi fifths = line_of(codes, 0, v);
        low |= (g < 4 ? vi_shl(fifths, 4 - g) : vi_shr(fifths, g - 4)) & vi_set(0x10101010);
    }
    if (bits == 6) {
        const vi high = line_of(codes, g / 4, v);
        const int up = 4 - g % 4 * 2;
        low |= (up >= 0 ? vi_shl(high, up) : vi_shr(high, -up)) & vi_set(0x30303030);
    }
    return low;
}

/* The factors of a run's codes (for q6_K, of each half), and the addend if the type has a
 * minimum. */
struct factors {
    vf scale[VECTORS][2], less[VECTORS];
};

INLINE void factors_of(int type, const int vectors, struct factors *f,
                       const uint8_t *const head[PANELS],
                       const uint8_t *const shares[PANELS])
{
    UNROLL
    for (int v = 0; v < vectors; v++) {
        const uint8_t *h = head[v / PARTS], *s = shares[v / PARTS] + first_of(v);
        vf scale = f16s_of(h, v), other = scale;
        if (type == HW_Q6_K) {
            other = scale * vf_load_i8(s + PACKED_SHARES);
            scale = scale * vf_load_i8(s);
        } else if (has_shares(type)) {
            scale = other = scale * vf_load_u8(s);
        }
        f->scale[v][0] = scale;
        f->scale[v][1] = other;
        if (minimum(type)) {
            vf less = f16s_of(h + PACKED_SCALES, v);
            if (has_shares(type))
                less = less * vf_load_u8(s + PACKED_SHARES);
            f->less[v] = less * vf_set((float)minimum(type));
        }
    }
}

/* Prefetches weights half a page ahead. Some processors do not prefetch beyond a page, and lines
 * requested a whole page ahead are often evicted before they are used. Requests every second line,
 * since processors fetch pairs, and into the second-level cache, which may have more outstanding
 * misses than the first. */
INLINE void fetch_run(const uint8_t *run, int bytes)
{
    enum { AHEAD = 2048, TO_SECOND_CACHE = 1 };
    UNROLL
    for (int i = 0; i < bytes; i += 2 * PACKED_LINE)
        ASK_FOR(run, AHEAD + i, TO_SECOND_CACHE);
}

/* Prefetches the lines `ahead` bytes after a run into the first-level cache. */
INLINE void fetch_lines(const uint8_t *run, int bytes, int64_t ahead)
{
    enum { TO_FIRST_CACHE = 3 };
    UNROLL
    for (int i = 0; i < bytes; i += PACKED_LINE)
        ASK_FOR(run, ahead + i, TO_FIRST_CACHE);
}

/* ---- products in floats ---- */

/* Adds to TILE_ROWS x `tokens` sums: rows of b, of `units` units, times rows of floats. */
struct float_tile {
    const uint8_t *panel[PANELS];
    int64_t units;
    int64_t ahead; /* how far ahead lines of panels are prefetched, in bytes; 0: not */
    const float *x;
    int64_t stride; /* of x, in floats */
    float *sums;    /* [tokens][TILE_ROWS] */
};

/* Code j of words as numbers. Without a minimum, codes count from the code of 0, which has only its
 * highest bit set. `words` have that bit inverted, so codes are signed. */
INLINE vf numbers_of(int type, vi words, int j)
{
    const int bits = code_bits(type);
    if (!minimum(type))
        return vf_of_vi(vi_sra(vi_shl(words, 32 - bits - 8 * j), 32 - bits));
    if (j == 3)
        return vf_of_vi(vi_shr(words, 24));
    return vf_of_vi(vi_shr(words, 8 * j) & vi_set(255));
}

INLINE void float_run(int type, const int tokens, vf sum[][VECTORS],
                      const struct factors *f, const uint8_t *const codes[PANELS],
                      const float *const x[])
{
    const uint32_t zero = (uint32_t)zero_code(type, PACKED_FLIP);
    UNROLL
    for (int g = 0; g < PACKED_RUN / PACKED_WORDS; g++) {
        vi words[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++) {
            words[v] = codes_of(type, codes[v / PARTS], g, v);
            if (zero)
                words[v] ^= vi_set((int32_t)(zero * 0x01010101u));
        }
        UNROLL
        for (int j = 0; j < PACKED_WORDS; j++) {
            vf w[VECTORS];
            UNROLL
            for (int v = 0; v < VECTORS; v++) {
                const vf numbers = numbers_of(type, words[v], j),
                         scale = f->scale[v][g / 4];
                w[v] = numbers * scale;
                if (minimum(type))
                    w[v] = vf_fma(numbers, scale, f->less[v]);
            }
            UNROLL
            for (int t = 0; t < tokens; t++) {
                const vf a = vf_set(x[t][g * PACKED_WORDS + j]);
                UNROLL
                for (int v = 0; v < VECTORS; v++)
                    sum[t][v] = vf_fma(w[v], a, sum[t][v]);
            }
        }
    }
}

/* A unit of the panels of a tile, which begins at `at`. */
INLINE void float_unit(int type, const int tokens, vf sum[][VECTORS],
                       const uint8_t *at[PANELS], const float *x[], int64_t ahead)
{
    const int head = head_bytes(type), run = run_bytes(type);
    const uint8_t *heads[PANELS];
    for (int p = 0; p < PANELS; p++) {
        heads[p] = at[p];
        at[p] += head;
    }
    for (int r = 0; r < unit_elements(type) / PACKED_RUN; r++) {
        const uint8_t *codes[PANELS];
        struct factors f;
        for (int p = 0; p < PANELS; p++) {
            codes[p] = at[p] + (has_shares(type) ? 2 * PACKED_SHARES : 0);
            if (ahead)
                fetch_lines(at[p], run, ahead);
            else if (tokens == 1)
                fetch_run(at[p], run);
        }
        factors_of(type, VECTORS, &f, heads, at);
        float_run(type, tokens, sum, &f, codes, x);
        for (int p = 0; p < PANELS; p++)
            at[p] += run;
        UNROLL
        for (int t = 0; t < tokens; t++)
            x[t] += PACKED_RUN;
    }
}

INLINE void float_tile(int type, const int tokens, const struct float_tile *tile)
{
    const uint8_t *at[PANELS];
    const float *x[8];
    vf sum[8][VECTORS];
    for (int p = 0; p < PANELS; p++)
        at[p] = tile->panel[p];
    UNROLL
    for (int t = 0; t < tokens; t++) {
        x[t] = tile->x + t * tile->stride;
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            sum[t][v] = vf_load(tile->sums + t * TILE_ROWS + v * LANES);
    }
    for (int64_t u = 0; u < tile->units; u++)
        float_unit(type, tokens, sum, at, x, tile->ahead);
    UNROLL
    for (int t = 0; t < tokens; t++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            vf_store(tile->sums + t * TILE_ROWS + v * LANES, sum[t][v]);
    }
}

typedef void float_tile_fn(const struct float_tile *tile);

/* ---- the work ---- */

/* Stores the sums of a tile in row r of c, from column `col` on. */
static inline void put_row(const struct plan *plan, int64_t r, int64_t col,
                           const float *sums)
{
    const struct result to = result_of(plan, r);
    put_sums(&to, col, TILE_ROWS, sums);
}

static inline bool is_packed(const struct plan *plan)
{
    return ((const struct hw_matmul *)plan->op)->b.layout != 0;
}

/* The rows of b that a thread multiplies by rows of a: a packed group whose panels are in parts, or
 * some whole panels, which are a single part. */
struct strip {
    const char *at; /* packed, or the first row */
    struct packed_parts parts;
    int64_t tiles, col, cols; /* the first column, and how many there are */
};

static inline bool is_in_parts(const struct plan *plan)
{
    return is_packed(plan) && packed_in_parts(plan->lowered.args.matmul.b_type);
}

/* The first rows of a multiply BESIDE packed whole panels at once. If there are more rows, the
 * panels have to stay in the second-level cache for the others. */
static inline int64_t strip_panels(const struct plan *plan)
{
    enum { FEW = LANES == 16 ? 6 : 3, CACHE = 1 << 20 };
    const struct matmul_args *m = &plan->lowered.args.matmul;
    if (is_in_parts(plan))
        return PACKED_GROUP;
    if (!is_packed(plan))
        return PANELS;
    return matrices_of(plan).rows <= FEW ||
                   packed_panel_bytes(m->b_type, m->k) <= CACHE / BESIDE
               ? BESIDE
               : PANELS;
}

/* How many strips a matrix has. */
static inline int64_t strips_across(const struct plan *plan)
{
    const int64_t n = plan->lowered.args.matmul.n, cols = strip_panels(plan) * PACKED_ROWS;
    return n / cols + (n % cols != 0);
}

/* Strip `i` of a matrix. */
static inline struct strip find_strip(const struct plan *plan, int64_t matrix, int64_t i)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const int64_t most = strip_panels(plan) * PACKED_ROWS, col = i * most,
                  cols = m->n - col < most ? m->n - col : most,
                  panels = (cols + PACKED_ROWS - 1) / PACKED_ROWS;
    const char *b = matrix_of_b(plan, matrix);
    const int64_t panel = (int64_t)packed_panel_bytes(m->b_type, m->k);
    return (struct strip){
        .at = b + (is_packed(plan) ? col / PACKED_ROWS * panel : col * m->b.stride[2]),
        .parts = packed_parts_of(m->b_type, m->k, panels, is_in_parts(plan)),
        .tiles = (panels + PANELS - 1) / PANELS,
        .col = col,
        .cols = cols
    };
}

/* A group of the work: at most `rows` rows of a, in the columns of a strip. */
struct block_group {
    int64_t first, end; /* rows of c */
    struct strip strip;
};

/* How many groups there are. */
static inline int64_t block_groups(const struct plan *plan, int64_t rows)
{
    const struct matrices all = matrices_of(plan);
    return all.count * ((all.rows + rows - 1) / rows) * strips_across(plan);
}

static inline struct block_group find_group(const struct plan *plan, int64_t rows,
                                            int64_t i)
{
    const int64_t all = matrices_of(plan).rows, down = (all + rows - 1) / rows,
                  across = strips_across(plan), matrix = i / across / down,
                  row = i / across % down * rows, left = all - row,
                  first = matrix * all + row;
    return (struct block_group){ first, first + (left < rows ? left : rows),
                                 find_strip(plan, matrix, i % across) };
}

/* The bytes of the panels that a thread has to make. */
static inline uint64_t own_panel_bytes(const struct plan *plan)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    return is_packed(plan) ? 0 : PANELS * packed_panel_bytes(m->b_type, m->k);
}

/* `count` parts of equal size of a strip's panels, one after the other. */
struct parts {
    const uint8_t *at;
    int64_t panels, count, units, bytes; /* units, bytes: of a part of one panel */
};

static inline struct parts find_parts(const struct strip *strip, int64_t first,
                                      int64_t count)
{
    const int64_t units = packed_units(&strip->parts, first);
    return (struct parts){ .at = (const uint8_t *)strip->at +
                                 packed_at(&strip->parts, first, 0),
                           .panels = strip->parts.panels,
                           .count = count,
                           .units = units,
                           .bytes = units * strip->parts.unit_bytes };
}

/* The panels of a strip as a single part. Panels that are not packed are in `own`. */
static inline struct parts whole_panels(const struct plan *plan, const struct strip *strip,
                                        const uint8_t *own)
{
    struct parts parts = find_parts(strip, 0, 1);
    if (!is_packed(plan))
        parts.at = own;
    return parts;
}

/* Packs these panels if they are not packed. */
static inline void make_panels(const struct plan *plan, const struct strip *strip,
                               uint8_t *own)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const int64_t bytes = strip->parts.units * strip->parts.unit_bytes;
    struct packed_rows from = {
        .rows = strip->at, .stride = m->b.stride[2], .k = m->k, .dtype = m->b_type
    };
    for (int64_t left = is_packed(plan) ? 0 : strip->cols; left > 0; left -= PACKED_ROWS) {
        from.count = left < PACKED_ROWS ? left : PACKED_ROWS;
        write_panel(&from, own);
        from.rows = (const char *)from.rows + PACKED_ROWS * from.stride;
        own += bytes;
    }
}

/* The panels of tile `i`. Panels beyond the last one repeat it. */
static inline void find_panels(const struct parts *parts, int64_t i,
                               const uint8_t *panel[PANELS])
{
    for (int p = 0; p < PANELS; p++) {
        const int64_t number = i * PANELS + p;
        panel[p] = parts->at +
                   (number < parts->panels ? number : i * PANELS) * parts->bytes;
    }
}

/* The bytes from the end of a part of a panel to the panel's next part. */
static inline int64_t part_gap(const struct parts *parts)
{
    return (parts->panels - 1) * parts->bytes;
}

/* Fills in everything but `run`, `groups` and the memory for them. Returns NULL, or the reason why
 * not. */
static inline const char *plan_blocks(struct plan *plan, const struct kernel_row *row,
                                      const void *args)
{
    const struct hw_matmul *op = args;
    const char *why = plan_lowered_packed(plan, row, args);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    if ((op->b.layout && op->b.layout != PACKED_LAYOUT) ||
        !packed_panel_bytes(op->b.dtype, PACKED_MOST_ELEMENTS))
        return "b: this row does not take these blocks";
    if (op->b.layout && plan->groups > 0 && matrices_of(plan).count > 1)
        return "b: more than one packed matrix";
    if ((double)rows_of(plan) * (double)m->k > 0x1p42)
        return "too many rows to prepare at once";
    return NULL;
}

#endif
