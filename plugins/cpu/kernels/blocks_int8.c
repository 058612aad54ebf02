/* SPDX-License-Identifier: MIT */
/* matmul of weights of block types with activations rounded to 8 bits, for HW_PRECISION=int8:
 * integers are multiplied, and each sum of 32 products becomes a float.
 *
 * First, rows of a are rounded, in runs of 32 with a scale each. Then tiles of b (blocks.h) are
 * multiplied by a few rows at a time, and the sums stay in registers. For one row, weights are read
 * about as fast as memory delivers them; for many rows, most instructions are dot products. A row
 * with numbers that bytes cannot represent, such as NaN, is multiplied in floats. */
#include "blocks.h"

DECLARE_PLAN(blocks_int8);

/* TOGETHER: the rows of a that one instruction takes and that are stored together. TOKENS: the most
 * rows in a tile, limited by the registers for sums. Sums of squares are kept in memory between
 * runs. */
#if defined(HAS_SQUARES)
enum { TOGETHER = 2, TOKENS = 8 };
#else
enum { TOGETHER = 1, TOKENS = LANES == 16 ? 6 : LANES == 8 ? 3 : 2 };
#endif

/* The most rows whose sums fit in registers with a single panel. */
enum { TOKENS_OF_PANEL = LANES == 16 ? 8 : TOKENS };

/* With more rows than this, weights arrive faster without the prefetches for one row. With AVX-512,
 * that begins with two rows. */
enum { MOST_FETCHING = LANES < 16 && TOKENS > 2 ? 2 : 1 };

enum { SOME = 8 }; /* codes of a row before the next row's */

/* 32 neighbours of TOGETHER rows of a. */
struct run {
    int8_t code[PACKED_RUN / SOME][TOGETHER][SOME];
    float scale[TOGETHER];
    /* the start of sums, since codes of b are not signed, for each half */
    int32_t start[2][TOGETHER];
    /* of the numbers that codes represent: minima are multiplied by it */
    float sum[TOGETHER];
};

/* ---- rows of a ---- */

/* Rounds 32 numbers of row `row` of a set of TOGETHER rows. Returns false if bytes cannot represent
 * them. */
INLINE bool set_run(struct run *to, int row, const float *x, int zero, bool halves)
{
    int8_t code[PACKED_RUN];
    const struct rounded_run run = round_run(code, x);
    const int32_t all = run.sum[0] + run.sum[1];
    for (int i = 0; i < PACKED_RUN / SOME; i++)
        memcpy(to->code[i][row], code + i * SOME, SOME);
    to->scale[row] = run.scale;
    to->sum[row] = run.scale * (float)all;
    to->start[0][row] = -zero * (halves ? run.sum[0] : all);
    to->start[1][row] = -zero * run.sum[1];
    return run.good;
}

/* The place of a row: the number of its set of TOGETHER rows, and the row in the set. A set never
 * has rows of two matrices. */
struct whereabouts {
    int64_t number;
    int row;
};

static struct whereabouts where_is(const struct plan *plan, int64_t r)
{
    if (TOGETHER == 1)
        return (struct whereabouts){ r, 0 };
    const int64_t rows = matrices_of(plan).rows, some = (rows + TOGETHER - 1) / TOGETHER;
    return (struct whereabouts){ r / rows * some + r % rows / TOGETHER,
                                 (int)(r % rows % TOGETHER) };
}

static int64_t runs_of(const struct plan *plan)
{
    return (where_is(plan, rows_of(plan) - 1).number + 1) *
           (plan->lowered.args.matmul.k / PACKED_RUN);
}

/* The rounded rows, and a flag for each row that could not be rounded. */
struct rounded {
    struct run *runs;
    int64_t stride; /* from one set of rows to the next, in runs */
    uint8_t *wrong; /* by row */
};

static struct rounded rounded_of(const struct plan *plan)
{
    struct run *first = plan_shared(plan);
    return (struct rounded){ first, plan->lowered.args.matmul.k / PACKED_RUN,
                             (uint8_t *)(first + runs_of(plan)) };
}

enum { PART_RUNS = PACKED_PART / PACKED_RUN };

/* Rounds up to PART_RUNS runs of a row, from the k-th element on. Returns false if bytes cannot
 * represent all of them. */
static bool set_part(struct run *to, const struct matmul_args *m, const struct line *x,
                     int row, int64_t k)
{
    const int zero = zero_code(m->b_type, DOT_ZERO);
    const bool halves = m->b_type == STORAGE_Q6_K;
    const int64_t left = (m->k - k) / PACKED_RUN, n = left < PART_RUNS ? left : PART_RUNS;
    _Alignas(64) float part[PACKED_PART];
    bool good = true;
    for (int64_t i = 0; i < n; i++)
        run_floats(m->a_type, part + i * PACKED_RUN, x, k + i * PACKED_RUN);
    for (int64_t i = 0; i < n; i++)
        good &= set_run(&to[i], row, part + i * PACKED_RUN, zero, halves);
    return good;
}

static void prepare_rows(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct rounded to = rounded_of(plan);
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        const struct line x = line_of_a(plan, r);
        const struct whereabouts at = where_is(plan, r);
        struct run *runs = to.runs + at.number * to.stride;
        bool good = true;
        for (int64_t k = 0; k < m->k; k += PACKED_PART, runs += PART_RUNS)
            good &= set_part(runs, m, &x, at.row, k);
        to.wrong[r] = !good;
    }
}

/* ---- words: a code of a times those of a line ---- */

/* Parts of TILE_ROWS rows of b, times the same parts of some rows of a. */
struct tile {
    /* PANELS, or the panels of all tiles that are side by side */
    const uint8_t *panel[BESIDE];
    int64_t parts, units, gap; /* of a panel; units: of a part; gap: see part_gap() */
    const struct run *x;       /* the first set of TOGETHER rows */
    int64_t stride;            /* of x, in runs */
    int64_t last;              /* of x: rows beyond repeat it */
    bool far;                  /* parts come from memory */
    bool ends;                 /* there are no more parts */
    float *sums;               /* [tokens][TILE_ROWS], to which the products are added */
    int64_t pitch;             /* from the sums of a tile to the sums of the next one */
};

/* Adds the integer sums of half a run, or of a whole run, to the sums of a tile. */
INLINE void add_integers(int bits, const int tokens, const int vectors, vf sum[][VECTORS],
                         vi dots[][VECTORS], const struct factors *f,
                         const struct run *const x[], int half)
{
    UNROLL
    for (int t = 0; t < tokens; t++) {
        const vf scale = vf_set(x[t]->scale[t % TOGETHER]);
        UNROLL
        for (int v = 0; v < vectors; v++) {
            const int32_t start = x[t]->start[half][t % TOGETHER];
            const vf dot = vf_of_vi(dot_end(bits, dots[t][v], start));
            sum[t][v] = vf_fma(dot, f->scale[v][half] * scale, sum[t][v]);
        }
    }
}

INLINE void add_minima(const int tokens, const int vectors, vf sum[][VECTORS],
                       const struct factors *f, const struct run *const x[])
{
    UNROLL
    for (int t = 0; t < tokens; t++) {
        const vf all = vf_set(x[t]->sum[t % TOGETHER]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[t][v] = vf_fma(f->less[v], all, sum[t][v]);
    }
}

INLINE vi word_of(const struct run *x, int row, int g)
{
    int32_t word;
    memcpy(&word, x->code[g * PACKED_WORDS / SOME][row] + g * PACKED_WORDS % SOME,
           sizeof word);
    return vi_set(word);
}

INLINE void multiply_run(int type, const int tokens, const int vectors, vf sum[][VECTORS],
                         const struct factors *f, const uint8_t *const codes[PANELS],
                         const struct run *const x[])
{
    const int bits = code_bits(type), halves = type == HW_Q6_K ? 2 : 1;
    const int words = PACKED_RUN / PACKED_WORDS / halves;
    UNROLL
    for (int half = 0; half < halves; half++) {
        vi dots[TOKENS_OF_PANEL][VECTORS];
        UNROLL
        for (int t = 0; t < tokens; t++) {
            UNROLL
            for (int v = 0; v < vectors; v++)
                dots[t][v] = dot_begin(bits, x[t]->start[half][t % TOGETHER]);
        }
        UNROLL
        for (int g = half * words; g < (half + 1) * words; g++) {
            vi code[VECTORS];
            UNROLL
            for (int v = 0; v < vectors; v++)
                code[v] = codes_of(type, codes[v / PARTS], g, v);
            UNROLL
            for (int t = 0; t < tokens; t++) {
                const vi word = word_of(x[t], t % TOGETHER, g);
                UNROLL
                for (int v = 0; v < vectors; v++)
                    dots[t][v] = dot_add(bits, dots[t][v], code[v], word);
            }
        }
        add_integers(bits, tokens, vectors, sum, dots, f, x, half);
    }
    if (minimum(type))
        add_minima(tokens, vectors, sum, f, x);
}

/* ---- squares: two rows of b by two of a ---- */

#if defined(HAS_SQUARES)
enum { AT_ONCE = 2 }; /* vectors of a panel whose squares are in registers */

/* For rows t and t + 1 of a, t even: dots[t] has the squares of the first two rows of each vector,
 * and dots[t + 1] the squares of the last two. Sums have the same order. */
INLINE void add_squares(int type, const int tokens, int half, int first, vi dots[][AT_ONCE],
                        const uint8_t *codes, const struct run *const x[])
{
    const int steps = PACKED_RUN / SOME / (type == HW_Q6_K ? 2 : 1);
    EACH (t, tokens)
        EACH (v, AT_ONCE)
            dots[t][v] = vi_set_two(x[t]->start[half]);
    UNROLL
    for (int i = half * steps; i < (half + 1) * steps; i++) {
        vi rows[2][AT_ONCE];
        STAY_IN_ORDER;
        EACH (v, AT_ONCE) {
            const vi word = codes_of(type, codes, 2 * i, first + v);
            const vi next = codes_of(type, codes, 2 * i + 1, first + v);
            rows[0][v] = vi_turns(word, next, false);
            rows[1][v] = vi_turns(word, next, true);
        }
        EACH (t, tokens)
            EACH (v, AT_ONCE)
                dots[t][v] = square_add(dots[t][v], rows[t % 2][v], vi_load(x[t]->code[i]));
    }
}

/* Like multiply_run(), with sums as squares. */
INLINE void square_run(int type, const int tokens, vf sum[][VECTORS],
                       const struct factors *f, const uint8_t *const codes[PANELS],
                       const struct run *const x[])
{
    const int halves = type == HW_Q6_K ? 2 : 1;
    UNROLL
    for (int first = 0; first < VECTORS; first += AT_ONCE) {
        UNROLL
        for (int half = 0; half < halves; half++) {
            vi dots[TOKENS][AT_ONCE];
            add_squares(type, tokens, half, first, dots, codes[0], x);
            EACH (t, tokens)
                EACH (v, AT_ONCE) {
                    const vf w = f->scale[first + v][half];
                    const vf scale = vf_turns(w, w, t % 2) * vf_set_two(x[t]->scale);
                    sum[t][first + v] = vf_fma(vf_of_vi(dots[t][v]), scale,
                                               sum[t][first + v]);
                }
        }
    }
    if (minimum(type))
        EACH (t, tokens)
            EACH (v, VECTORS)
                sum[t][v] = vf_fma(vf_turns(f->less[v], f->less[v], t % 2),
                                   vf_set_two(x[t]->sum), sum[t][v]);
}

/* Squares become rows of c. */
INLINE void end_squares(const int tokens, vf sum[][VECTORS])
{
    UNROLL
    for (int t = 0; t < tokens; t += 2)
        EACH (v, VECTORS) {
            const vf first = vf_columns(sum[t][v], sum[t + 1][v], false);
            sum[t + 1][v] = vf_columns(sum[t][v], sum[t + 1][v], true);
            sum[t][v] = first;
        }
}
#else
INLINE void square_run(int type, const int tokens, vf sum[][VECTORS],
                       const struct factors *f, const uint8_t *const codes[PANELS],
                       const struct run *const x[])
{
    multiply_run(type, tokens, VECTORS, sum, f, codes, x);
}

INLINE void end_squares(const int tokens, vf sum[][VECTORS])
{
    (void)tokens, (void)sum;
}
#endif

/* Squares pay off from three rows of a on: with one or two, interleaving costs more than the
 * additions. */
INLINE bool as_squares(int tokens)
{
    return TOGETHER > 1 && tokens > 2;
}

/* ---- tiles ---- */

/* How far ahead tiles with more rows than MOST_FETCHING prefetch lines of parts in memory, in
 * bytes. A run takes so long there that the processor's own prefetching is too late. 0: not at all,
 * since nothing was timed on AArch64. */
INLINE int64_t ahead_of(int type)
{
    return LANES > 4 && packed_in_parts(type) ? 3072 : 0;
}

/* A unit of the panels of a tile, which begins at `at`. */
INLINE void multiply_unit(int type, const int tokens, const int panels, vf sum[][VECTORS],
                          const uint8_t *at[PANELS], const struct run *x[], bool far)
{
    const int vectors = panels * PARTS;
    const int head = head_bytes(type), run = run_bytes(type);
    const uint8_t *heads[PANELS];
    UNROLL
    for (int p = 0; p < panels; p++) {
        heads[p] = at[p];
        at[p] += head;
    }
    for (int r = 0; r < unit_elements(type) / PACKED_RUN; r++) {
        const uint8_t *codes[PANELS];
        struct factors f;
        UNROLL
        for (int p = 0; p < panels; p++) {
            codes[p] = at[p] + (has_shares(type) ? 2 * PACKED_SHARES : 0);
            if (tokens <= MOST_FETCHING)
                fetch_run(at[p], run);
            else if (far && ahead_of(type))
                fetch_lines(at[p], run, ahead_of(type));
        }
        factors_of(type, vectors, &f, heads, at);
        if (as_squares(tokens))
            square_run(type, tokens, sum, &f, codes, x);
        else
            multiply_run(type, tokens, vectors, sum, &f, codes, x);
        UNROLL
        for (int p = 0; p < panels; p++)
            at[p] += run;
        UNROLL
        for (int t = 0; t < tokens; t++)
            x[t]++;
    }
}

/* Sets the starts of the rows of a of a tile. */
INLINE void find_rows(const int tokens, const struct tile *tile, const struct run *x[])
{
    UNROLL
    for (int t = 0; t < tokens; t++) {
        const int64_t first = t / TOGETHER * TOGETHER;
        x[t] = tile->x +
               (first < tile->last ? first : tile->last) / TOGETHER * tile->stride;
    }
}

INLINE void load_sums(const int tokens, const int vectors, vf sum[][VECTORS],
                      const float *from)
{
    UNROLL
    for (int t = 0; t < tokens; t++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[t][v] = vf_load(from + t * TILE_ROWS + v * LANES);
    }
}

INLINE void store_sums(const int tokens, const int vectors, vf sum[][VECTORS], float *to)
{
    UNROLL
    for (int t = 0; t < tokens; t++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            vf_store(to + t * TILE_ROWS + v * LANES, sum[t][v]);
    }
}

INLINE void multiply_tile(int type, const int tokens, const int panels,
                          const struct tile *tile)
{
    const int vectors = panels * PARTS;
    const uint8_t *at[PANELS];
    const struct run *x[TOKENS_OF_PANEL];
    vf sum[TOKENS_OF_PANEL][VECTORS];
    UNROLL
    for (int p = 0; p < panels; p++)
        at[p] = tile->panel[p];
    find_rows(tokens, tile, x);
    load_sums(tokens, vectors, sum, tile->sums);
    for (int64_t part = 0; part < tile->parts; part++) {
        for (int64_t u = 0; u < tile->units; u++)
            multiply_unit(type, tokens, panels, sum, at, x, tile->far);
        UNROLL
        for (int p = 0; p < panels; p++)
            at[p] += tile->gap;
    }
    if (as_squares(tokens) && tile->ends)
        end_squares(tokens, sum);
    store_sums(tokens, vectors, sum, tile->sums);
}

/* Panel after panel: memory delivers a single stream fastest. */
INLINE void multiply_panels(int type, const int tokens, const struct tile *tile)
{
    struct tile part = *tile;
    for (int p = 0; p < PANELS; p++) {
        part.panel[0] = tile->panel[p];
        part.sums = tile->sums + p * PACKED_ROWS;
        multiply_tile(type, tokens, 1, &part);
    }
}

/* Takes the whole panels of some tiles in turns, a unit of each. They are as many streams, and
 * processors prefetch each of them. If registers do not hold all sums, one tile at a time is
 * enough. */
INLINE void multiply_beside(int type, const int tokens, const struct tile *tile)
{
    const uint8_t *at[BESIDE / PANELS][PANELS];
    const struct run *x[TOKENS_OF_PANEL];
    vf sum[BESIDE / PANELS][TOKENS_OF_PANEL][VECTORS];
    find_rows(tokens, tile, x);
    EACH (i, BESIDE / PANELS) {
        EACH (p, PANELS)
            at[i][p] = tile->panel[i * PANELS + p];
        load_sums(tokens, VECTORS, sum[i], tile->sums + i * tile->pitch);
    }
    for (int64_t u = 0; u < tile->units; u++) {
        EACH (i, BESIDE / PANELS) {
            const struct run *same[TOKENS_OF_PANEL];
            EACH (t, tokens)
                same[t] = x[t];
            if (i && tokens > 2)
                STAY_IN_ORDER;
            multiply_unit(type, tokens, PANELS, sum[i], at[i], same, false);
        }
        EACH (t, tokens)
            x[t] += unit_elements(type) / PACKED_RUN;
    }
    EACH (i, BESIDE / PANELS)
        store_sums(tokens, VECTORS, sum[i], tile->sums + i * tile->pitch);
}

/* ---- which tile ---- */

enum { FOUR = TOKENS < 4 ? TOKENS : 4, SIX = TOKENS_OF_PANEL < 6 ? TOKENS_OF_PANEL : 6 };

/* A tile function, and its number of rows of a. */
struct tile_of {
    void (*multiply)(const struct tile *tile);
    int64_t rows;
};

enum { STREAMS = 5 };

/* Functions for one type: tiles that take panel after panel, tiles that take PANELS at once, and
 * one row in floats. */
struct tiles {
    struct tile_of stream[STREAMS], four, most;
    float_tile_fn *floats;
};

#define STREAM(NAME, name, size, tokens)                                                   \
    static void size##_##name(const struct tile *tile)                                     \
    {                                                                                      \
        multiply_panels(HW_##NAME, tokens, tile);                                          \
    }
#define X(NAME, name, elements, head, run)                                                 \
    STREAM(NAME, name, one, 1)                                                             \
    STREAM(NAME, name, two, 2)                                                             \
    STREAM(NAME, name, four, FOUR)                                                         \
    STREAM(NAME, name, six, SIX)                                                           \
    STREAM(NAME, name, eight, TOKENS_OF_PANEL)                                             \
    static void wide_four_##name(const struct tile *tile)                                  \
    {                                                                                      \
        multiply_tile(HW_##NAME, FOUR, PANELS, tile);                                      \
    }                                                                                      \
    static void wide_most_##name(const struct tile *tile)                                  \
    {                                                                                      \
        multiply_tile(HW_##NAME, TOKENS, PANELS, tile);                                    \
    }                                                                                      \
    static void floats_##name(const struct float_tile *tile)                               \
    {                                                                                      \
        float_tile(HW_##NAME, 1, tile);                                                    \
    }
PACKED_TYPES(X)
#undef X
#undef STREAM

/* If registers have room for fewer rows, two of them are the same. */
#define TILES(name)                                                                        \
    {                                                                                      \
        { { one_##name, 1 },                                                               \
          { two_##name, 2 },                                                               \
          { four_##name, FOUR },                                                           \
          { (int)SIX > (int)FOUR ? six_##name : four_##name, SIX },                        \
          { (int)TOKENS_OF_PANEL > (int)FOUR ? eight_##name : four_##name,                 \
            TOKENS_OF_PANEL } },                                                           \
            { PANELS > 1 ? wide_four_##name : four_##name, FOUR },                         \
            { PANELS > 1                ? wide_most_##name                                 \
              : (int)TOKENS > (int)FOUR ? eight_##name                                     \
                                        : four_##name,                                     \
              TOKENS },                                                                    \
            floats_##name                                                                  \
    }

static struct tiles tiles_of(int type)
{
    switch (type) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        return (struct tiles)TILES(name);
        PACKED_TYPES(X)
#undef X
    default:
        return (struct tiles){ 0 };
    }
}

/* The tile for the first of `left` rows. From memory, and for one or two rows, panels are read as
 * one stream. If the largest tile has 6 rows, 7 and 8 rows take two tiles of 4. */
static struct tile_of tile_for(const struct tiles *tiles, int64_t left, bool far)
{
    int i = 0;
    if (!far && left > 2)
        return left <= 4 || (TOKENS == 6 && (left == 7 || left == 8)) ? tiles->four
                                                                      : tiles->most;
    while (i + 1 < STREAMS && tiles->stream[i].rows < left)
        i++;
    return tiles->stream[i];
}

/* Tiles that are side by side. Only q8_0 has packed panels that are not cut. */
#define BESIDE_TILE(size, tokens)                                                          \
    static void beside_##size(const struct tile *tile)                                     \
    {                                                                                      \
        multiply_beside(HW_Q8_0, tokens, tile);                                            \
    }
BESIDE_TILE(one, 1)
BESIDE_TILE(two, 2)
BESIDE_TILE(four, FOUR)
BESIDE_TILE(most, TOKENS)
#undef BESIDE_TILE

static struct tile_of tile_beside(int64_t left)
{
    static const struct tile_of tiles[] = {
        { beside_one, 1 }, { beside_two, 2 }, { beside_four, FOUR }, { beside_most, TOKENS }
    };
    int i = 0;
    while (i < 3 && tiles[i].rows < left)
        i++;
    return tiles[i];
}

/* ---- groups ---- */

/* Tiles add up sums of at most this many rows of a beyond the last one. */
enum { MORE_ROWS = TOKENS_OF_PANEL - 1 };

/* The sums of rows first .. end - 1 in a strip: [tile][rows + MORE_ROWS][TILE_ROWS]. */
struct sums {
    const struct plan *plan;
    const struct strip *strip;
    int64_t first, end;
    float *at;
};

static int64_t sums_of_tile(const struct sums *to)
{
    return (to->end - to->first + MORE_ROWS) * TILE_ROWS;
}

/* Some parts, from part `first` of the strip on, times n rows of a from row r on: everything of a
 * tile but its panels. */
static struct tile make_tile(const struct sums *to, const struct parts *parts,
                             int64_t first, int64_t r, int64_t n)
{
    const struct rounded x = rounded_of(to->plan);
    return (struct tile){ .parts = parts->count,
                          .units = parts->units,
                          .gap = part_gap(parts),
                          .x = x.runs + where_is(to->plan, r).number * x.stride +
                               first * PART_RUNS,
                          .stride = x.stride,
                          .last = n - 1,
                          .ends = first + parts->count == to->strip->parts.count,
                          .sums = to->at + (r - to->first) * TILE_ROWS,
                          .pitch = sums_of_tile(to) };
}

/* Adds these parts for as many rows as a tile takes, and returns that number. `far`: the parts come
 * from memory. */
static int64_t add_parts(const struct sums *to, const struct parts *parts, int64_t first,
                         int64_t r, bool far)
{
    const struct tiles tiles = tiles_of(to->plan->lowered.args.matmul.b_type);
    const struct tile_of some = tile_for(&tiles, to->end - r, far);
    const int64_t left = to->end - r, n = left < some.rows ? left : some.rows;
    struct tile tile = make_tile(to, parts, first, r, n);
    tile.far = far;
    for (int64_t i = 0; i < to->strip->tiles; i++, tile.sums += sums_of_tile(to)) {
        find_panels(parts, i, tile.panel);
        some.multiply(&tile);
    }
    return n;
}

/* Adds parts of equal size. The first rows of a take them in memory order; then they are in a cache
 * for the other rows. */
static void add_in_turns(const struct sums *to, int64_t first, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct parts part = find_parts(to->strip, first + i, 1);
        n = add_parts(to, &part, first + i, to->first, true);
    }
    const struct parts parts = find_parts(to->strip, first, count);
    for (int64_t r = to->first + n; r < to->end; r += n)
        n = add_parts(to, &parts, first, r, false);
}

/* The number of parts of a strip, from `first` on, that stay in the cache while the rows of a are
 * multiplied. All have the same size. */
static int64_t parts_at_once(const struct strip *strip, int64_t first)
{
    enum { CACHE = 384 << 10 };
    const struct packed_parts *all = &strip->parts;
    const int64_t most = CACHE / (all->panels * all->units * all->unit_bytes) + 1,
                  whole = all->count - (all->last_units < all->units);
    return first >= whole ? 1 : whole - first < most ? whole - first : most;
}

/* Whether the first rows of a take the panels of a strip side by side. For one or two rows and
 * short panels, a single stream is faster. */
static bool are_beside(const struct sums *to)
{
    enum { LEAST = 32 << 10 };
    const struct strip *strip = to->strip;
    return BESIDE > PANELS && is_packed(to->plan) && strip->tiles == BESIDE / PANELS &&
           (to->end - to->first > 2 ||
            strip->parts.units * strip->parts.unit_bytes > LEAST);
}

/* Like add_parts(), for the first rows of a. */
static int64_t add_beside(const struct sums *to, const struct parts *panels)
{
    const int64_t left = to->end - to->first;
    const struct tile_of some = tile_beside(left);
    const int64_t n = left < some.rows ? left : some.rows;
    struct tile tile = make_tile(to, panels, 0, to->first, n);
    for (int i = 0; i < BESIDE / PANELS; i++)
        find_panels(panels, i, tile.panel + i * PANELS);
    some.multiply(&tile);
    return n;
}

static void add_whole(const struct sums *to, const struct parts *panels)
{
    int64_t r = to->first;
    if (are_beside(to))
        r += add_beside(to, panels);
    while (r < to->end)
        r += add_parts(to, panels, 0, r, false);
}

static void make_sums(const struct sums *to, uint8_t *own)
{
    const struct strip *strip = to->strip;
    memset(to->at, 0, (size_t)(strip->tiles * sums_of_tile(to)) * sizeof *to->at);
    if (is_in_parts(to->plan)) {
        for (int64_t i = 0, n; i < strip->parts.count; i += n) {
            n = parts_at_once(strip, i);
            add_in_turns(to, i, n);
        }
    } else {
        const struct parts parts = whole_panels(to->plan, strip, own);
        make_panels(to->plan, strip, own);
        add_whole(to, &parts);
    }
}

/* A row that was not rounded: its floats are written to `x`. */
static void row_in_floats(const struct plan *plan, const struct strip *strip, int64_t r,
                          float *x, uint8_t *panels)
{
    float_tile_fn *multiply = tiles_of(plan->lowered.args.matmul.b_type).floats;
    float sums[PACKED_GROUP * PACKED_ROWS] = { 0 };
    floats_of_row(plan, r, x);
    for (int64_t i = 0; i < strip->parts.count; i++) {
        const struct parts part = is_in_parts(plan) ? find_parts(strip, i, 1)
                                                    : whole_panels(plan, strip, panels);
        struct float_tile tile = { .units = part.units, .x = x + i * PACKED_PART };
        for (int64_t t = 0; t < strip->tiles; t++) {
            tile.sums = sums + t * TILE_ROWS;
            find_panels(&part, t, tile.panel);
            multiply(&tile);
        }
    }
    for (int64_t t = 0; t < strip->tiles; t++)
        put_row(plan, r, strip->col + t * TILE_ROWS, sums + t * TILE_ROWS);
}

/* The number of rows of a in a group: few enough to stay in the cache while strips of b are read.
 * If panels have to be packed first, more rows share them. */
static int64_t rows_of_group(const struct plan *plan)
{
    enum { CACHE = 384 << 10, LEAST = 4 * TOKENS, MOST = 512 / TOKENS * TOKENS };
    const int64_t rows = matrices_of(plan).rows,
                  bytes = plan->lowered.args.matmul.k / PACKED_RUN *
                          (int64_t)sizeof(struct run) / TOGETHER;
    const int64_t some = bytes && is_packed(plan) ? CACHE / bytes / TOKENS * TOKENS : MOST;
    const int64_t most = some < LEAST ? LEAST : some < MOST ? some : MOST;
    return rows < most ? rows : most;
}

/* The memory of a thread. */
struct own {
    float *x;    /* a row in floats */
    float *sums; /* of the rows of a group, in a strip */
    uint8_t *panels;
};

static uint64_t sums_bytes(const struct plan *plan)
{
    return (uint64_t)((rows_of_group(plan) + MORE_ROWS) * strip_panels(plan) *
                      PACKED_ROWS) *
           sizeof(float);
}

static struct own own_of(const struct plan *plan, uint32_t thread)
{
    float *x = plan_own(plan, thread), *sums = x + float_pitch(plan);
    return (struct own){ x, sums, (uint8_t *)sums + sums_bytes(plan) };
}

/* Rows first .. end - 1 of c, in the columns of a strip. */
static void multiply_rows(const struct plan *plan, const struct strip *strip, int64_t first,
                          int64_t end, const struct own *own)
{
    const uint8_t *wrong = rounded_of(plan).wrong;
    const struct sums sums = { plan, strip, first, end, own->sums };
    make_sums(&sums, own->panels);
    for (int64_t r = first; r < end; r++)
        if (wrong[r])
            row_in_floats(plan, strip, r, own->x, own->panels);
        else
            for (int64_t t = 0; t < strip->tiles; t++)
                put_row(plan, r, strip->col + t * TILE_ROWS,
                        own->sums + t * sums_of_tile(&sums) + (r - first) * TILE_ROWS);
}

static void run_groups(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const int64_t rows = rows_of_group(plan);
    const struct own own = own_of(plan, thread);
    for (int64_t i = first; i < end; i++) {
        const struct block_group g = find_group(plan, rows, i);
        multiply_rows(plan, &g.strip, g.first, g.end, &own);
    }
}

const char *PLAN(blocks_int8)(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const char *why = plan_blocks(plan, row, args);
    if (why)
        return why;
    if (plan->groups == 0)
        return NULL;
    plan->run = run_groups;
    plan->groups = block_groups(plan, rows_of_group(plan));
    plan->work /= 8;
    plan_prepare(plan, prepare_rows, 1);
    plan->shared_bytes += (uint64_t)runs_of(plan) * sizeof(struct run);
    plan->own_bytes = float_row_bytes(plan) + sums_bytes(plan) + own_panel_bytes(plan);
    return NULL;
}
