/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_wgmma.cu: many rows of a, and b stored [n,k]. */
#include "matmul_plan.h"

#include "matmul_wgmma.h"

/* ---- the tile ---- */

struct tile {
    int rows, cols, steps;
    enum family family;
};

static const struct tile tiles[] = {
#define X(rows, cols, steps) { rows, cols, steps, FAMILY_wgmma_##rows##x##cols },
    WGMMA_TILES(X)
#undef X
};

/* The approximate number of cycles of a product with a tile. Each unit computes one tile at a time,
 * and a step along k takes the longer of its products and its loads. The memory traffic mostly
 * overlaps with that. The constants choose the fastest tile, or one nearly as fast, for 20 sizes in
 * bf16 that were measured on an H200. A step of TF32 has half as many numbers, and should take as
 * long. */
static int64_t cycles_of(const struct tile *t, const struct product *p, int units)
{
    enum { PRODUCTS = 4096, LOADED = 50, DELIVERED = 1600, BEGIN = 500 };
    const struct size *s = &p->size;
    const int64_t steps = pieces(s->k, WGMMA_STEP(p->type));
    const int64_t waves = pieces(pieces(s->m, t->rows) * pieces(s->n, t->cols), units);
    const int64_t products = t->rows * t->cols * WGMMA_ROW / PRODUCTS;
    const int64_t load = WGMMA_STEP_BYTES(t->rows, t->cols) / LOADED;
    const int64_t compute = waves * (steps * larger(products, load) + BEGIN);
    const int64_t bytes = p->type == HW_F32 ? 4 : 2;
    const int64_t memory = bytes * (s->m * s->k + s->n * s->k + s->m * s->n) / DELIVERED;
    return larger(compute, memory) + smaller(compute, memory) / 16;
}

static const struct tile *best_tile(const struct product *p, int units)
{
    const struct tile *best = &tiles[0];
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const int64_t cycles = cycles_of(&tiles[i], p, units);
        if (cycles < least) {
            least = cycles;
            best = &tiles[i];
        }
    }
    return best;
}

/* ---- the launch ---- */

static int element_of(int32_t type)
{
    return type == HW_F32 ? TENSOR_F32 : type == HW_F16 ? TENSOR_F16 : TENSOR_BF16;
}

/* Boxes of a or b; their rows are as wide as the widest swizzle. */
static int32_t describe_operand(const struct launcher *at, const struct product *p,
                                const struct matrix *x, int64_t rows, int box_rows,
                                struct tensor_map *map)
{
    const struct box box = {
        .type = p->type == HW_F32 ? TENSOR_TF32 : element_of(p->type),
        .rows = rows,
        .cols = p->size.k,
        .stride = x->stride,
        .box_rows = box_rows,
        .box_cols = WGMMA_STEP(p->type),
        .swizzle = SWIZZLE_128,
    };
    return box_describe(at, x->address, &box, map);
}

static int32_t describe_c(const struct launcher *at, const struct product *p,
                          struct tensor_map *map)
{
    const struct box box = {
        .type = element_of(p->c.type),
        .rows = p->size.m,
        .cols = p->size.n,
        .stride = p->c.stride,
        .box_rows = WGMMA_STORE_ROWS,
        .box_cols = WGMMA_STORE_COLS,
        .swizzle = p->c.type == HW_F32 ? SWIZZLE_128 : SWIZZLE_64,
    };
    return box_describe(at, p->c.address, &box, map);
}

static int32_t describe_all(const struct launcher *at, const struct product *p,
                            const struct tile *tile, struct wgmma_args *args)
{
    const struct size *s = &p->size;
    int32_t status = describe_operand(at, p, &p->a, s->m, args->a_rows, &args->a);
    if (!status)
        status = describe_operand(at, p, &p->b, s->n, tile->cols, &args->b);
    if (!status)
        status = describe_c(at, p, &args->c);
    return status;
}

static int32_t multiply(const struct launcher *at, const struct product *p)
{
    enum { BAND_ROWS = 2048 };
    const struct size *s = &p->size;
    const struct tile *tile = best_tile(p, at->device->units);
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
            .kernel = tuned_of(tile->family, p->type),
            .groups = { (unsigned)smaller(groups, at->device->units), 1, 1 },
            .threads = (unsigned)WGMMA_THREADS(tile->rows),
            .shared = (unsigned)WGMMA_SHARED(tile->rows, tile->cols, tile->steps),
            .early = true },
        &args);
}

/* With b in f32, products are in TF32, which needs HW_PRECISION; otherwise in 16 bits. */
static int32_t type_of(const struct hw_matmul *op)
{
    return op->b.dtype == HW_F32 ? HW_F32 : HW_NONE;
}

static int32_t launch_wgmma(const struct launcher *at, const struct plan *plan,
                            const void *args)
{
    return product_launch(at, plan, args, type_of(args), multiply);
}

kernel_plan_fn plan_matmul_wgmma;
const char *plan_matmul_wgmma(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const int32_t type = row->needs & HALVES ? type_of(args) : HW_NONE;
    const char *why = product_plan(plan, row, args, type);
    plan->launch = launch_wgmma;
    return why;
}
