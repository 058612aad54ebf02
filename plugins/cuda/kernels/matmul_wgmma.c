/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_wgmma.cu: many rows of a, and b stored [n,k]. */
#include "matmul_plan.h"

#include "matmul_wgmma.h"

/* ---- the tile ---- */

struct tile {
    int rows, cols, steps;
    enum tuned f16, bf16;
};

static const struct tile tiles[] = {
#define X(rows, cols, steps)                                                               \
    { rows, cols, steps, TUNED_wgmma_f16_##rows##x##cols,                                  \
      TUNED_wgmma_bf16_##rows##x##cols },
    WGMMA_TILES(X)
#undef X
};

/* About how many cycles a product takes with a tile: each unit computes one at a time, a step along
 * k takes as long as its products or its loading, and the memory has to deliver, which mostly
 * happens at the same time. The constants are those that choose the fastest tile, or one nearly as
 * fast, for 20 sizes that were measured on an H200. */
static int64_t cycles_of(const struct tile *t, const struct size *s, int units)
{
    enum { PRODUCTS = 2048, LOADED = 50, DELIVERED = 1600, BEGIN = 500 };
    const int64_t waves = pieces(pieces(s->m, t->rows) * pieces(s->n, t->cols), units);
    const int64_t products = t->rows * t->cols * WGMMA_STEP / PRODUCTS;
    const int64_t load = WGMMA_STEP_BYTES(t->rows, t->cols) / LOADED;
    const int64_t compute = waves *
                            (pieces(s->k, WGMMA_STEP) * larger(products, load) + BEGIN);
    const int64_t memory = 2 * (s->m * s->k + s->n * s->k + s->m * s->n) / DELIVERED;
    return larger(compute, memory) + smaller(compute, memory) / 16;
}

static const struct tile *best_tile(const struct size *s, int units)
{
    const struct tile *best = &tiles[0];
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const int64_t cycles = cycles_of(&tiles[i], s, units);
        if (cycles < least) {
            least = cycles;
            best = &tiles[i];
        }
    }
    return best;
}

/* ---- the launch ---- */

/* Boxes of so many rows and columns have at most 128 bytes in a row: the swizzle that their width
 * allows. */
static int32_t describe(const struct launcher *at, const struct matrix *x, int64_t rows,
                        int64_t cols, int box_rows, int box_cols, struct tensor_map *map)
{
    const int bytes = x->type == HW_F32 ? 4 : 2;
    const struct box box = {
        .type = x->type == HW_F32   ? TENSOR_F32
                : x->type == HW_F16 ? TENSOR_F16
                                    : TENSOR_BF16,
        .rows = rows,
        .cols = cols,
        .stride = x->stride,
        .box_rows = box_rows,
        .box_cols = box_cols,
        .swizzle = box_cols * bytes == 128 ? SWIZZLE_128 : SWIZZLE_64,
    };
    return describe_box(at, x->address, &box, map);
}

static int32_t describe_all(const struct launcher *at, const struct product *p,
                            const struct tile *tile, struct wgmma_args *args)
{
    const struct size *s = &p->size;
    int32_t status = describe(at, &p->a, s->m, s->k, args->a_rows, WGMMA_STEP, &args->a);
    if (!status)
        status = describe(at, &p->b, s->n, s->k, tile->cols, WGMMA_STEP, &args->b);
    if (!status)
        status = describe(at, &p->c, s->m, s->n, WGMMA_STORE_ROWS, WGMMA_STORE_COLS,
                          &args->c);
    return status;
}

static int32_t multiply(const struct launcher *at, const struct product *p)
{
    enum { BAND_ROWS = 2048 };
    const struct size *s = &p->size;
    const struct tile *tile = best_tile(s, at->device->units);
    const int64_t groups = pieces(s->m, tile->rows) * pieces(s->n, tile->cols);
    struct wgmma_args args = {
        .bias = p->bias,
        .scale = p->scale,
        .m = (int)s->m,
        .n = (int)s->n,
        .k = (int)s->k,
        .band = BAND_ROWS / tile->rows,
        .a_rows = (int)smaller(tile->rows, s->m),
        .bias_type = p->bias_type,
        .c_type = p->c.type,
    };
    const int32_t status = describe_all(at, p, tile, &args);
    if (status)
        return status;
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = p->type == HW_F16 ? tile->f16 : tile->bf16,
            .groups = { (unsigned)smaller(groups, at->device->units), 1, 1 },
            .threads = (unsigned)WGMMA_THREADS(tile->rows),
            .shared = (unsigned)WGMMA_SHARED(tile->rows, tile->cols, tile->steps),
            .early = true },
        &args);
}

static int32_t launch_wgmma(const struct launcher *at, const struct plan *plan,
                            const void *args)
{
    return launch_product(at, plan, args, 0, multiply);
}

kernel_plan_fn plan_matmul_wgmma;
const char *plan_matmul_wgmma(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    plan->launch = launch_wgmma;
    return plan_product(plan, row, args, 0);
}
