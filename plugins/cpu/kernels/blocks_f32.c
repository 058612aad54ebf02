/* SPDX-License-Identifier: MIT */
/* matmul of weights of block types with activations in f32: codes become floats in registers.
 *
 * First, rows of a become rows of floats. Then tiles of b (blocks.h) are multiplied by a few of
 * them at a time. Weights are rounded as in the portable kernels; only the order of sums
 * differs. */
#include "blocks.h"

DECLARE_PLAN(blocks);

/* The most rows of a in a tile: their sums have to fit in registers. */
enum { TOKENS = LANES == 16 ? 8 : 4 };

/* Some types need so many registers for a run that the 16 of AVX2 hold the sums of fewer rows: 8
 * rows by 4096 x 4096 of q4_K take 4.4 ms instead of 7.2 (AMD EPYC, Zen 4). */
static int64_t most_rows(int type)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    return type == HW_Q5_1 || type == HW_Q5_K   ? 2
           : type == HW_Q5_0 || type == HW_Q4_K ? 3
                                                : TOKENS;
#else
    (void)type;
    return TOKENS;
#endif
}

/* ---- tiles of one type, for 1, 2, 3, 4 and TOKENS rows of a ---- */

struct tiles {
    int64_t rows; /* at most */
    float_tile_fn *one, *two, *three, *four, *most;
};

#define X(NAME, name, elements, head, run)                                                 \
    static void one_##name(const struct float_tile *tile)                                  \
    {                                                                                      \
        float_tile(HW_##NAME, 1, tile);                                                    \
    }                                                                                      \
    static void two_##name(const struct float_tile *tile)                                  \
    {                                                                                      \
        float_tile(HW_##NAME, 2, tile);                                                    \
    }                                                                                      \
    static void three_##name(const struct float_tile *tile)                                \
    {                                                                                      \
        float_tile(HW_##NAME, 3, tile);                                                    \
    }                                                                                      \
    static void four_##name(const struct float_tile *tile)                                 \
    {                                                                                      \
        float_tile(HW_##NAME, 4, tile);                                                    \
    }                                                                                      \
    static void most_##name(const struct float_tile *tile)                                 \
    {                                                                                      \
        float_tile(HW_##NAME, TOKENS, tile);                                               \
    }
PACKED_TYPES(X)
#undef X

static struct tiles tiles_of(int type)
{
    switch (type) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        return (struct tiles){ most_rows(HW_##NAME), one_##name,  two_##name,              \
                               three_##name,         four_##name, most_##name };
        PACKED_TYPES(X)
#undef X
    default:
        return (struct tiles){ 0 };
    }
}

/* Multiplies as many of `left` rows as one of the functions takes, and returns how many. */
static int64_t some_rows(const struct tiles *tiles, const struct float_tile *tile,
                         int64_t left)
{
    const int64_t most = left < tiles->rows ? left : tiles->rows;
    const int64_t n = most >= TOKENS ? TOKENS : most >= 4 ? 4 : most;
    (n == TOKENS ? tiles->most
     : n == 4    ? tiles->four
     : n == 3    ? tiles->three
     : n == 2    ? tiles->two
                 : tiles->one)(tile);
    return n;
}

enum { ROWS_OF_GROUP = 64 * TOKENS }; /* of a */

/* Adds up the sums of rows first .. end - 1 in a strip: [tile][rows][TILE_ROWS]. */
static void multiply_strip(const struct plan *plan, const struct strip *strip,
                           int64_t first, int64_t end, float *sums, uint8_t *panels)
{
    const struct tiles tiles = tiles_of(plan->lowered.args.matmul.b_type);
    const int64_t sums_of_tile = (end - first) * TILE_ROWS;
    memset(sums, 0, (size_t)(strip->tiles * sums_of_tile) * sizeof *sums);
    make_panels(plan, strip, panels);
    for (int64_t i = 0; i < strip->parts.count; i++) {
        const struct parts part = is_in_parts(plan) ? find_parts(strip, i, 1)
                                                    : whole_panels(plan, strip, panels);
        for (int64_t t = 0; t < strip->tiles; t++) {
            struct float_tile tile = { .units = part.units, .stride = float_pitch(plan) };
            find_panels(&part, t, tile.panel);
            for (int64_t r = first; r < end;) {
                tile.ahead = is_in_parts(plan) && r == first ? PANELS * part.bytes : 0;
                tile.x = row_of_x(plan, r) + i * PACKED_PART;
                tile.sums = sums + t * sums_of_tile + (r - first) * TILE_ROWS;
                r += some_rows(&tiles, &tile, end - r);
            }
        }
    }
}

static int64_t rows_of_group(const struct plan *plan)
{
    const int64_t rows = matrices_of(plan).rows;
    return rows < ROWS_OF_GROUP ? rows : ROWS_OF_GROUP;
}

static uint64_t sums_bytes(const struct plan *plan)
{
    return (uint64_t)(rows_of_group(plan) * strip_panels(plan) * PACKED_ROWS) *
           sizeof(float);
}

/* Rows first .. end - 1 of c, in the columns of a strip. */
static void multiply_rows(const struct plan *plan, const struct strip *strip, int64_t first,
                          int64_t end, uint32_t thread)
{
    float *sums = plan_own(plan, thread);
    multiply_strip(plan, strip, first, end, sums, (uint8_t *)sums + sums_bytes(plan));
    for (int64_t t = 0; t < strip->tiles; t++)
        for (int64_t r = first; r < end; r++, sums += TILE_ROWS)
            put_row(plan, r, strip->col + t * TILE_ROWS, sums);
}

static void run_groups(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const int64_t rows = rows_of_group(plan);
    for (int64_t i = first; i < end; i++) {
        const struct block_group g = find_group(plan, rows, i);
        multiply_rows(plan, &g.strip, g.first, g.end, thread);
    }
}

const char *PLAN(blocks)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const char *why = plan_blocks(plan, row, args);
    if (why || plan->groups == 0)
        return why;
    plan->run = run_groups;
    plan->groups = block_groups(plan, rows_of_group(plan));
    plan->work /= 2;
    plan_prepare(plan, prepare_floats, float_row_bytes(plan));
    plan->own_bytes = sums_bytes(plan) + own_panel_bytes(plan);
    return NULL;
}
