/* SPDX-License-Identifier: MIT */
/* matmul with weights of block types beside activations that are rounded to 8 bits, for
 * HW_PRECISION=int8: integers are multiplied, and what 32 of them sum up to is a float.
 *
 * First, rows of a are rounded, in runs of 32 with a scale each. Then tiles of b (blocks.h) are
 * multiplied by a few rows at a time, whose sums stay in registers. For one row, this reads weights
 * about as fast as memory delivers them; for many, most instructions are dot products. A row with
 * numbers that bytes cannot stand for, such as NaN, is multiplied in floats. */
#include "blocks.h"

DECLARE_PLAN(blocks_int8);

/* Rows of a that lie together, since one instruction takes them all, and the most that a tile has:
 * as many as registers can hold sums of. Those of squares are in memory between runs. */
#if defined(HAS_SQUARES)
enum { TOGETHER = 2, TOKENS = 8 };
#else
enum { TOGETHER = 1, TOKENS = LANES == 16 ? 6 : LANES == 8 ? 3 : 2 };
#endif

/* As many rows of a have sums in registers beside a single panel. */
enum { TOKENS_OF_PANEL = LANES == 16 ? 8 : TOKENS };

/* Beside more rows, weights come faster if they are not asked for as beside one. With AVX-512, that
 * begins with two. */
enum { MOST_FETCHING = LANES < 16 && TOKENS > 2 ? 2 : 1 };

enum { SOME = 8 }; /* codes of a row before those of the next one */

/* 32 neighbours of the rows of a that lie together. */
struct run {
    int8_t code[PACKED_RUN / SOME][TOGETHER][SOME];
    float scale[TOGETHER];
    /* what sums begin with, since codes of b are not signed, for each half */
    int32_t start[2][TOGETHER];
    /* of the numbers that codes stand for: what minima are multiplied by */
    float sum[TOGETHER];
};

/* ---- rows of a ---- */

/* Rounds 32 numbers of row `row` of those together. Returns false if bytes cannot stand for
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

/* Where the rounded rows are, and which of them are not. */
struct rounded {
    struct run *runs;
    int64_t stride; /* from some rows to the next ones, in runs */
    uint8_t *wrong; /* by row */
};

/* Where a row is: which of those that lie together, and the number of these. No two matrices have
 * rows that lie together. */
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

static struct rounded rounded_of(const struct plan *plan)
{
    struct run *first = plan_shared(plan);
    return (struct rounded){ first, plan->lowered.args.matmul.k / PACKED_RUN,
                             (uint8_t *)(first + runs_of(plan)) };
}

static void prepare_rows(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct rounded to = rounded_of(plan);
    const int zero = zero_code(m->b_type, DOT_ZERO);
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        const struct line x = line_of_a(plan, r);
        const struct whereabouts at = where_is(plan, r);
        bool good = true;
        for (int64_t i = 0; i < to.stride; i++) {
            float some[PACKED_RUN];
            run_floats(m->a_type, some, &x, i * PACKED_RUN);
            good &= set_run(&to.runs[at.number * to.stride + i], at.row, some, zero,
                            m->b_type == STORAGE_Q6_K);
        }
        to.wrong[r] = !good;
    }
}

/* ---- words: a code of a times those of a line ---- */

struct tile {
    const uint8_t *panel[PANELS];
    int64_t units;
    const struct run *x; /* the first rows that lie together */
    int64_t stride;      /* of x, in runs */
    int64_t last;        /* of x: rows beyond it are that again */
    bool far;            /* panels come from memory */
    float *sums;         /* [tokens][TILE_ROWS] */
};

/* Adds to the sums of a tile what integers say about half a run, or about all of it. */
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

/* Of rows of a t and t + 1, where t is even, dots[t] are the squares of the first two rows of each
 * vector, and dots[t + 1] those of the last two; and so are sums. */
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

/* What multiply_run() does, with sums as squares. */
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

/* Squares pay off from three rows of a on: one or two have more to put in turns than to add. */
INLINE bool as_squares(int tokens)
{
    return TOGETHER > 1 && tokens > 2;
}

/* ---- tiles ---- */

/* Whether tiles of more rows than MOST_FETCHING ask for lines of panels that are in memory. A run
 * takes so long there that the processor does not see the next ones in time, and rows of a that
 * leave the first cache disturb what it fetches by itself. Lines of q8_0 come faster without. With
 * other sets than AVX-512, nothing was timed. */
INLINE bool asks_for_lines(int type)
{
    return LANES == 16 && type != HW_Q8_0;
}

INLINE void fetch_lines(const uint8_t *run, int bytes)
{
    enum { AHEAD = 3072, TO_FIRST_CACHE = 3 };
    UNROLL
    for (int i = 0; i < bytes; i += PACKED_LINE)
        ASK_FOR(run, AHEAD + i, TO_FIRST_CACHE);
}

INLINE void multiply_tile(int type, const int tokens, const int panels,
                          const struct tile *tile)
{
    const int vectors = panels * PARTS;
    const int head = head_bytes(type), run = run_bytes(type);
    const int runs = unit_elements(type) / PACKED_RUN;
    const uint8_t *at[PANELS];
    const struct run *x[TOKENS_OF_PANEL];
    vf sum[TOKENS_OF_PANEL][VECTORS];
    UNROLL
    for (int p = 0; p < panels; p++)
        at[p] = tile->panel[p];
    UNROLL
    for (int t = 0; t < tokens; t++) {
        const int64_t first = t / TOGETHER * TOGETHER;
        x[t] = tile->x +
               (first < tile->last ? first : tile->last) / TOGETHER * tile->stride;
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[t][v] = vf_set(0);
    }
    for (int64_t u = 0; u < tile->units; u++) {
        const uint8_t *heads[PANELS];
        UNROLL
        for (int p = 0; p < panels; p++) {
            heads[p] = at[p];
            at[p] += head;
        }
        for (int r = 0; r < runs; r++) {
            const uint8_t *codes[PANELS];
            struct factors f;
            UNROLL
            for (int p = 0; p < panels; p++) {
                codes[p] = at[p] + (has_shares(type) ? 2 * PACKED_SHARES : 0);
                if (tokens <= MOST_FETCHING)
                    fetch_run(at[p], run);
                else if (asks_for_lines(type) && tile->far)
                    fetch_lines(at[p], run);
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
    if (as_squares(tokens))
        end_squares(tokens, sum);
    UNROLL
    for (int t = 0; t < tokens; t++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            vf_store(tile->sums + t * TILE_ROWS + v * LANES, sum[t][v]);
    }
}

/* Panel after panel, for one or two rows of a: a single stream is what memory delivers fastest. So
 * do 8, whose sums fill the registers. */
INLINE void multiply_few(int type, const int tokens, const struct tile *tile)
{
    struct tile part = *tile;
    for (int p = 0; p < PANELS; p++) {
        part.panel[0] = tile->panel[p];
        part.sums = tile->sums + p * PACKED_ROWS;
        multiply_tile(type, tokens, 1, &part);
    }
}

/* ---- which tile ---- */

typedef void tile_fn(const struct tile *tile);

/* Tiles of one type, for 1, 2, 4 (if that is less) and TOKENS rows of a, for 8 that take panel
 * after panel, if these are faster, and one row in floats. */
struct tiles {
    tile_fn *one, *two, *four, *most, *eight;
    float_tile_fn *floats;
};

#define X(NAME, name, elements, head, run)                                                 \
    static void one_##name(const struct tile *tile)                                        \
    {                                                                                      \
        multiply_few(HW_##NAME, 1, tile);                                                  \
    }                                                                                      \
    static void two_##name(const struct tile *tile)                                        \
    {                                                                                      \
        multiply_few(HW_##NAME, 2, tile);                                                  \
    }                                                                                      \
    static void four_##name(const struct tile *tile)                                       \
    {                                                                                      \
        multiply_tile(HW_##NAME, TOKENS < 4 ? TOKENS : 4, PANELS, tile);                   \
    }                                                                                      \
    static void eight_##name(const struct tile *tile)                                      \
    {                                                                                      \
        multiply_few(HW_##NAME, TOKENS_OF_PANEL, tile);                                    \
    }                                                                                      \
    static void most_##name(const struct tile *tile)                                       \
    {                                                                                      \
        multiply_tile(HW_##NAME, TOKENS, PANELS, tile);                                    \
    }                                                                                      \
    static void floats_##name(const struct float_tile *tile)                               \
    {                                                                                      \
        float_tile(HW_##NAME, 1, tile);                                                    \
    }
PACKED_TYPES(X)
#undef X

static struct tiles tiles_of(int type)
{
    switch (type) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        return (struct tiles){ one_##name,                                                 \
                               two_##name,                                                 \
                               four_##name,                                                \
                               most_##name,                                                \
                               asks_for_lines(HW_##NAME) ? eight_##name : NULL,            \
                               floats_##name };
        PACKED_TYPES(X)
#undef X
    default:
        return (struct tiles){ 0 };
    }
}

/* Multiplies as many of `left` rows as one of the functions takes, and returns how many. Where a
 * tile has 6, 7 and 8 rows are one of 8, if panels are in memory, or two of 4. */
static int64_t some_rows(const struct tiles *tiles, struct tile *tile, int64_t left)
{
    const bool both = TOKENS == 6 && (left == 7 || left == 8);
    const bool eight = both && tile->far && tiles->eight;
    const bool four = TOKENS > 4 && (left <= 4 || (both && !eight));
    const int64_t most = left == 1 ? 1 : left == 2 ? 2 : four ? 4 : eight ? 8 : TOKENS;
    const int64_t n = left < most ? left : most;
    tile->last = n - 1;
    (left == 1   ? tiles->one
     : left == 2 ? tiles->two
     : four      ? tiles->four
     : eight     ? tiles->eight
                 : tiles->most)(tile);
    tile->far = false;
    return n;
}

/* ---- groups ---- */

/* A row that was not rounded, as floats, which are in `x`. */
static void row_in_floats(const struct plan *plan, const struct tiles *tiles,
                          const struct tile *tile, int64_t r, float *x)
{
    struct float_tile floats = { .units = tile->units, .x = x, .sums = tile->sums };
    memcpy(floats.panel, tile->panel, sizeof floats.panel);
    floats_of_row(plan, r, x);
    tiles->floats(&floats);
}

/* Rows first .. end - 1 of c, in the columns of a tile of b. */
static void multiply_rows(const struct plan *plan, struct tile *tile, int64_t col,
                          int64_t first, int64_t end, float *own)
{
    const struct tiles tiles = tiles_of(plan->lowered.args.matmul.b_type);
    const struct rounded x = rounded_of(plan);
    float sums[TOKENS_OF_PANEL * TILE_ROWS];
    tile->sums = sums;
    tile->stride = x.stride;
    for (int64_t r = first, n; r < end; r += n) {
        tile->x = x.runs + where_is(plan, r).number * x.stride;
        n = some_rows(&tiles, tile, end - r);
        for (int64_t t = 0; t < n; t++)
            if (!x.wrong[r + t])
                put_row(plan, r + t, col, sums + t * TILE_ROWS);
        for (int64_t t = 0; t < n; t++)
            if (x.wrong[r + t]) {
                row_in_floats(plan, &tiles, tile, r + t, own);
                put_row(plan, r + t, col, sums);
            }
    }
}

/* The rows of a that a group multiplies: few enough that they stay in the cache while tiles of b
 * pass by. If tiles have to be packed first, all rows. */
static int64_t rows_of_group(const struct plan *plan)
{
    enum { CACHE = 384 << 10 };
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct hw_tensor *b = &((const struct hw_matmul *)plan->op)->b;
    const int64_t rows = matrices_of(plan).rows,
                  bytes = m->k / PACKED_RUN * (int64_t)sizeof(struct run) / TOGETHER;
    const int64_t most = bytes ? CACHE / bytes / TOKENS * TOKENS : rows;
    return !b->layout || rows <= most ? rows : most < 4 * TOKENS ? 4 * TOKENS : most;
}

static void run_tiles(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const int64_t across = tiles_across(plan), rows = matrices_of(plan).rows;
    const int64_t some = rows_of_group(plan), down = (rows + some - 1) / some;
    const bool is_packed = ((const struct hw_matmul *)plan->op)->b.layout != 0;
    float *own = plan_own(plan, thread);
    for (int64_t i = first; i < end; i++) {
        const int64_t matrix = i / across / down, row = i / across % down * some;
        const int64_t left = rows - row, from = matrix * rows + row;
        struct tile tile = { .units = units_of(plan), .far = is_packed };
        find_panels(plan, matrix, i % across, own + float_pitch(plan),
                    tile.panel); /* after the floats of a row */
        multiply_rows(plan, &tile, i % across * TILE_ROWS, from,
                      from + (left < some ? left : some), own);
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
    const struct matrices all = matrices_of(plan);
    const int64_t some = rows_of_group(plan);
    plan->run = run_tiles;
    plan->groups = all.count * ((all.rows + some - 1) / some) * tiles_across(plan);
    plan->work /= 8;
    plan_prepare(plan, prepare_rows, 1);
    plan->shared_bytes += (uint64_t)runs_of(plan) * sizeof(struct run);
    plan->own_bytes = own_panel_bytes(plan) + float_row_bytes(plan);
    return NULL;
}
