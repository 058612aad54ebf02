/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_f32.cu: many rows of a, and b stored [n,k], of any types; what is not
 * f32 is converted first. */
#include "matmul_plan.h"

#include "matmul_ring.h"

static const struct ring_tile tiles[] = {
#define X(rows, cols) { rows, cols, F32_THREADS(rows, cols) },
    F32_TILES(X)
#undef X
};

static const enum tuned kernels[] = {
#define X(rows, cols) TUNED_f32_##rows##x##cols,
    F32_TILES(X)
#undef X
};

static int32_t multiply(const struct launcher *at, const struct product *p)
{
    return ring_launch(at, p, tiles, sizeof tiles / sizeof tiles[0], kernels);
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
    plan->launch = launch_f32;
    return ring_plan(plan, row, args, HW_F32);
}
