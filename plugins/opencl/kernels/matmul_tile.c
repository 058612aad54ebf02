/* SPDX-License-Identifier: MIT */
/* Plans matmul_tile.cl: products of floats with floats, and with blocks stored [n,k]. */
#include "matmul.h"

/* The best tile lets a device finish first if each unit runs one group at a time. `speed`: the
 * speed of a unit as a share of the fastest tile's. With these shares, the best tile of an H200 was
 * chosen for squares of 512 (32 x 32), 1024 (64 x 64), 2048 and 4096 (128 x 128). */
static const struct tile {
    int rows, cols, depth, mine_rows, mine_cols;
    double speed;
} tiles[] = {
    { 128, 128, 8, 8, 8, 1.0 },
    { 64, 64, 16, 4, 4, 0.8 },
    { 64, 64, 16, 8, 8, 0.65 },
    { 32, 32, 16, 4, 4, 0.6 },
};
enum { TILES = sizeof tiles / sizeof tiles[0] };

static uint32_t items_of(const struct tile *tile)
{
    return (uint32_t)(tile->rows * tile->cols / (tile->mine_rows * tile->mine_cols));
}

static int64_t groups_of(const struct tile *tile, const struct lowered *l)
{
    const struct matmul_args *m = &l->args.matmul;
    return matmul_batches(l) * matmul_pieces(m->m, tile->rows) *
           matmul_pieces(m->n, tile->cols);
}

/* The time in steps of the fastest tile, on all units. */
static double time_of(const struct device *device, const struct tile *tile, int64_t groups)
{
    const double waves = (double)matmul_pieces(groups, device->units);
    return waves * tile->rows * tile->cols / tile->speed;
}

static uint32_t best_tile(const struct device *device, const struct lowered *l)
{
    /* The last tile's groups of 64 run on every device that this row accepts. */
    uint32_t best = TILES - 1;
    double least = -1;
    for (uint32_t i = 0; i < TILES; i++) {
        const int64_t groups = groups_of(&tiles[i], l);
        const double time = time_of(device, &tiles[i], groups);
        if (items_of(&tiles[i]) > device->group || groups > INT32_MAX)
            continue;
        if (least < 0 || time < least) {
            least = time;
            best = i;
        }
    }
    return best;
}

static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const struct matmul_args *m = &l->args.matmul;
    const uint32_t tile = best_tile(device, l);
    const uint32_t types = matmul_float(m->a_type) * MATMUL_TYPES + matmul_type(m->b_type);
    const uint32_t transposed = (m->transpose_a ? 2u : 0u) + (m->transpose_b ? 1u : 0u);
    *launch = (struct launch){
        .program = TUNED_MATMUL_TILE + (tile * 3 * MATMUL_TYPES + types) * 4 + transposed,
        .group = items_of(&tiles[tile]),
        .groups = groups_of(&tiles[tile], l),
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    const uint32_t number = launch->program - TUNED_MATMUL_TILE;
    const uint32_t transposed = number % 4, types = number / 4 % (3 * MATMUL_TYPES);
    const struct tile *tile = &tiles[number / (4 * 3 * MATMUL_TYPES)];
    (void)device;
    snprintf(options, size,
             "-DGROUP=%u -DTILE_ROWS=%d -DTILE_COLS=%d -DTILE_DEPTH=%d -DMINE_ROWS=%d "
             "-DMINE_COLS=%d -DA_TYPE=%s -DB_TYPE=%s -DTRANSPOSE_A=%u -DTRANSPOSE_B=%u",
             (unsigned)launch->group, tile->rows, tile->cols, tile->depth, tile->mine_rows,
             tile->mine_cols, matmul_types[types / MATMUL_TYPES].name,
             matmul_types[types % MATMUL_TYPES].name, (unsigned)(transposed / 2),
             (unsigned)(transposed % 2));
}

static const struct tuned matmul_tile = { "matmul_tile", choose, describe };

kernel_plan_fn plan_matmul_tile;
const char *plan_matmul_tile(struct plan *plan, const struct kernel_row *row,
                             const void *args)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const bool blocks = matmul_type(m->b_type) > matmul_float(STORAGE_BF16);
    if (matmul_type(m->b_type) == MATMUL_TYPES)
        return "b has a type that this row does not take";
    if (blocks && !m->transpose_b)
        return "blocks of b do not lie along k";
    if (!matmul_has_fours(m->a, m->a_type, m->transpose_a ? m->m : m->k) ||
        (!blocks && !matmul_has_fours(m->b, m->b_type, m->transpose_b ? m->k : m->n)))
        return "rows of a or b are not whole, aligned vectors";
    plan->tuned = &matmul_tile;
    return NULL;
}
