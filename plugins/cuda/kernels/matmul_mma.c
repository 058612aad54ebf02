/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_mma.cu: many rows of a, and b stored [n,k]. */
#include "matmul_plan.h"

#include "matmul_ring.h"

static const struct ring_tile tiles[] = {
#define X(rows, cols) { rows, cols, 1, MMA_THREADS },
    MMA_TILES(X)
#undef X
};

static const enum family families[] = {
#define X(rows, cols) FAMILY_mma_##rows##x##cols,
    MMA_TILES(X)
#undef X
};

const char *ring_plan(struct plan *plan, const struct kernel_row *row,
                      const struct hw_matmul *op, int32_t type)
{
    const char *why = product_plan(plan, row, op, type);
    if (!why && plan->lowered.args.matmul.k % (type == HW_F32 ? 4 : 8))
        return "k must be a multiple of 8, of 4 in f32";
    return why;
}

int32_t ring_launch(const struct launcher *at, const struct product *product,
                    const struct ring_tile *tile, enum tuned kernel)
{
    enum { BAND_ROWS = 2048 };
    const struct size *s = &product->size;
    const struct ring_args args = {
        .a = product->a.address,
        .b = product->b.address,
        .c = product->c.address,
        .bias = product->bias,
        .scale = product->scale,
        .a_stride = product->a.stride,
        .b_stride = product->b.stride,
        .c_stride = product->c.stride,
        .m = (int)s->m,
        .n = (int)s->n,
        .k = (int)s->k,
        .band = (int)smaller(BAND_ROWS / tile->rows, pieces(s->m, tile->rows)),
        .bias_type = product->bias_type,
        .c_type = product->c.type,
    };
    const int64_t groups = pieces(s->m, tile->rows) * pieces(s->n, tile->cols);
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = kernel,
            .groups = { (unsigned)groups, 1, 1 },
            .threads = (unsigned)tile->threads,
            .shared = (unsigned)RING_SHARED(tile->rows, tile->cols, tile->ways),
        },
        &args);
}

/* The largest tile that gives all units work, or else the smallest tile. */
static size_t best_tile(const struct size *s, int units)
{
    const size_t last = sizeof tiles / sizeof tiles[0] - 1;
    size_t i = 0;
    while (i < last && pieces(s->m, tiles[i].rows) * pieces(s->n, tiles[i].cols) < units)
        i++;
    return i;
}

static int32_t multiply(const struct launcher *at, const struct product *p)
{
    const size_t best = best_tile(&p->size, at->device->units);
    return ring_launch(at, p, &tiles[best], tuned_of(families[best], p->type));
}

static int32_t launch_mma(const struct launcher *at, const struct plan *plan,
                          const void *args)
{
    return product_launch(at, plan, args, 0, multiply);
}

kernel_plan_fn plan_matmul_mma;
const char *plan_matmul_mma(struct plan *plan, const struct kernel_row *row,
                            const void *args)
{
    const char *why = ring_plan(plan, row, args, 0);
    plan->launch = launch_mma;
    return why;
}
