/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_f32.cu: rows of a, and b stored [n,k], of any types. Other types than
 * f32 are converted first. */
#include "matmul_plan.h"

#include "matmul_ring.h"

static const struct ring_tile tiles[] = {
#define X(rows, cols, down, right, ways)                                                   \
    { rows, cols, ways, F32_THREADS(rows, cols, down, right, ways) },
    F32_TILES(X)
#undef X
};

static const enum tuned kernels[] = {
#define X(rows, cols, down, right, ways) TUNED_f32_##rows##x##cols##x##ways,
    F32_TILES(X)
#undef X
};

enum { TILES = sizeof tiles / sizeof tiles[0], MOST_AT_A_TIME = 6 };

/* The time in microseconds that a multiprocessor of an H100 takes for 1 to `most` groups at a time,
 * with K of 4096, in the order of F32_TILES. Multiprocessors with less shared memory may run fewer
 * groups at a time: the choice is not tuned for them. */
static const struct {
    int most, us[MOST_AT_A_TIME];
} times[TILES] = {
    { 2, { 600, 713 } }, { 6, { 208, 235, 385, 385, 580, 580 } },
    { 1, { 110 } },      { 3, { 72, 116, 165 } },
    { 2, { 31, 36 } },
};

/* The time with a tile, if multiprocessors have `groups` groups. */
static int64_t time_of(size_t tile, int64_t groups)
{
    const int most = times[tile].most, *us = times[tile].us;
    const int64_t last = groups % most;
    return groups / most * us[most - 1] + (last ? us[last - 1] : 0);
}

static size_t best_tile(const struct size *s, int units)
{
    size_t best = 0;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < TILES; i++) {
        const int64_t groups = pieces(s->m, tiles[i].rows) * pieces(s->n, tiles[i].cols);
        const int64_t us = time_of(i, pieces(groups, units));
        if (us < least) {
            least = us;
            best = i;
        }
    }
    return best;
}

static int32_t multiply(const struct launcher *at, const struct product *p)
{
    const size_t best = best_tile(&p->size, at->device->units);
    return ring_launch(at, p, &tiles[best], kernels[best]);
}

static int32_t launch_f32(const struct launcher *at, const struct plan *plan,
                          const void *args)
{
    return product_launch(at, plan, args, HW_F32, multiply);
}

kernel_plan_fn plan_matmul_f32;
const char *plan_matmul_f32(struct plan *plan, const struct kernel_row *row,
                            const void *args)
{
    const char *why = ring_plan(plan, row, args, HW_F32);
    plan->launch = launch_f32;
    return why;
}
