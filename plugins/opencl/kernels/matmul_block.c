/* SPDX-License-Identifier: MIT */
/* Plans matmul_block.cl: products on a CPU, of any types that the portable kernel takes. */
#include "matmul.h"

enum { BLOCK_ROWS = 96, BLOCK_COLS = 128 }; /* as in matmul_block.cl */

static void choose(const struct device *device, const struct lowered *l,
                   struct launch *launch)
{
    const struct matmul_args *m = &l->args.matmul;
    (void)device;
    *launch = (struct launch){
        .program = TUNED_MATMUL_BLOCK,
        .group = 1,
        .groups = matmul_batches(l) * matmul_pieces(m->m, BLOCK_ROWS) *
                  matmul_pieces(m->n, BLOCK_COLS),
    };
}

static void describe(const struct device *device, const struct launch *launch,
                     char *options, size_t size)
{
    (void)launch;
    snprintf(options, size, "-DWIDE=%u", (unsigned)device->wide);
}

static const struct tuned matmul_block = { "matmul_block", choose, describe };

kernel_plan_fn plan_matmul_block;
const char *plan_matmul_block(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const char *why = launch_lower(plan, row, args);
    plan->tuned = &matmul_block;
    return why;
}
