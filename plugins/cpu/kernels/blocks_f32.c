/* SPDX-License-Identifier: MIT */
/* matmul with weights of block types beside activations in f32: codes become floats in registers.
 *
 * First, rows of a become rows of floats. Then tiles of b (blocks.h) are multiplied by a few of
 * them at a time. Weights are rounded as the portable kernels round them; only sums are in another
 * order. */
#include "blocks.h"

DECLARE_PLAN(blocks);

/* The most rows of a that a tile has: as many as registers can hold sums of. */
enum { TOKENS = LANES == 16 ? 8 : 4 };

/* Beside what a run of some types needs, the 16 registers of AVX2 hold sums of fewer rows: 8 rows
 * by 4096 x 4096 of q4_K take 4.4 ms instead of 7.2 (AMD EPYC, Zen 4). */
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

/* A group: all rows of a matrix of c, in the columns of a tile of b. */
static void run_tiles(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct tiles tiles = tiles_of(m->b_type);
    const int64_t rows = matrices_of(plan).rows, across = tiles_across(plan);
    float sums[TOKENS * TILE_ROWS];
    for (int64_t i = first; i < end; i++) {
        struct float_tile tile = { .units = units_of(plan),
                                   .stride = float_pitch(plan),
                                   .sums = sums };
        const int64_t matrix = i / across, col = i % across * TILE_ROWS;
        const int64_t from = matrix * rows, to = from + rows;
        find_panels(plan, matrix, i % across, plan_own(plan, thread), tile.panel);
        for (int64_t r = from, n; r < to; r += n) {
            tile.x = row_of_x(plan, r);
            n = some_rows(&tiles, &tile, to - r);
            for (int64_t t = 0; t < n; t++)
                put_row(plan, r + t, col, sums + t * TILE_ROWS);
        }
    }
}

const char *PLAN(blocks)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const char *why = plan_blocks(plan, row, args);
    if (why || plan->groups == 0)
        return why;
    plan->run = run_tiles;
    plan->groups = matrices_of(plan).count * tiles_across(plan);
    plan->work /= 2;
    plan_prepare(plan, prepare_floats, float_row_bytes(plan));
    plan->own_bytes = own_panel_bytes(plan);
    return NULL;
}
