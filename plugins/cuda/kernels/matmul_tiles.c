/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_tiles.cu: a few rows of a, rounded to 8 bits, and blocks of b stored
 * [n,k]. */
#include "gemv_plan.h"
#include "matmul_plan.h"

#include "matmul_tiles.h"

enum { MOST = 64, EIGHTS_MOST = 4 };

/* For 8, 16 and 32 rows of a: 1, 2 and 4 eights. */
static enum tuned kernel_of(int32_t type, int eights)
{
    static const enum family families[] = { FAMILY_tiles_8, FAMILY_tiles_16,
                                            FAMILY_tiles_32 };
    return tuned_of(families[eights / 2], type); /* 0, 1, 2 */
}

/* With fewer rows of a, matmul_gemv_int8 is faster: it multiplies one row after the other, while
 * tiles take as long for one row as for eight. The less unpacking a type needs, the fewer rows make
 * tiles pay off. */
static int64_t fewest_of(int32_t type)
{
    return type == HW_Q8_0 ? 3 : type == HW_Q4_0 ? 4 : 5;
}

/* The rows of a in a launch, in units of 8, if that many are left. */
static int eights_for(int64_t rows)
{
    return rows <= 8 ? 1 : rows <= 16 ? 2 : EIGHTS_MOST;
}

/* ---- what fits ---- */

/* The resources of each group. */
struct shape {
    int stages;
    unsigned shared;
};

/* As many stages of the rings as fit if a group has `tiles` tiles; none if fewer than two fit. */
static struct shape shape_of(const struct device *device, int32_t type, int eights,
                             int64_t tiles)
{
    enum { DECLARED = 1024 };
    const int64_t stage = TILES_WARPS(eights) * TILES_STAGE_BYTES(type);
    const int64_t fixed = TILES_FIXED_BYTES(eights) +
                          tiles * TILES_RESULTS(eights) * (int64_t)sizeof(float);
    int64_t stages = (device->shared_most - DECLARED - fixed) / stage;
    stages = stages < TILES_STAGES ? stages : TILES_STAGES;
    if (stages < 2)
        return (struct shape){ 0 };
    return (struct shape){ (int)stages, (unsigned)(fixed + stages * stage) };
}

/* Whether each launch for `rows` rows of a has room: the last one may have fewer eights than the
 * others, and need more. */
static bool has_room(const struct device *device, int32_t type, int64_t rows)
{
    for (int64_t left = rows; left > 0; left -= EIGHTS_MOST * 8)
        if (!shape_of(device, type, eights_for(left), TILES_MOST).stages)
            return false;
    return true;
}

static bool is_aligned(const struct hw_matmul *op, const struct matmul_args *m)
{
    const uint64_t b = launch_base(&op->b) + (uint64_t)m->b.offset;
    const uint64_t a = launch_base(&op->a) + (uint64_t)m->a.offset;
    const uint64_t align_b = op->b.dtype == HW_Q6_K ? 2 : 16;
    const uint64_t align_a = op->a.dtype == HW_F32 ? 16 : 8;
    return (b | (uint64_t)m->b.stride[2]) % align_b == 0 &&
           (a | (uint64_t)m->a.stride[2]) % align_a == 0;
}

/* ---- launches ---- */

static int32_t launch_round(const struct launcher *at, const struct tiles_args *args)
{
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = TUNED_tiles_round,
            .groups = { (unsigned)(args->eights * args->k / TILES_ROUNDERS), 1, 1 },
            .threads = TILES_ROUNDERS,
            .early = true,
        },
        args);
}

/* Launches products of rounded a with rows of b: as many as groups can keep sums of. */
static int32_t launch_tiles(const struct launcher *at, const struct tiles_args *all,
                            int32_t type)
{
    const int64_t units = at->device->units, most = units * TILES_MOST * TILES_ROWS;
    const int eights = all->eights;
    int32_t status = HW_OK;
    for (int64_t row = 0; row < all->rows && !status; row += most) {
        struct tiles_args args = *all;
        args.b += (uint64_t)(row * all->b_stride);
        args.bias += all->bias_type ? (uint64_t)(row * hw_dtype_bytes(all->bias_type)) : 0;
        args.c += (uint64_t)(row * hw_dtype_bytes(all->c_type));
        args.rows = (int)(all->rows - row < most ? all->rows - row : most);
        const int64_t tiles = (args.rows + TILES_ROWS - 1) / TILES_ROWS;
        const int64_t groups = tiles < units ? tiles : units;
        const int64_t each = (tiles + groups - 1) / groups;
        const struct shape shape = shape_of(at->device, type, eights, each);
        if (!shape.stages)
            return hw_fail(at->device->host, HW_INTERNAL,
                           "rings of %d rows do not fit into shared memory", eights * 8);
        args.stages = shape.stages;
        status = launch_kernel(at,
                               &(struct launch){
                                   .kernel = kernel_of(type, eights),
                                   .groups = { (unsigned)groups, 1, 1 },
                                   .threads = (unsigned)TILES_WARPS(eights) * 32,
                                   .shared = shape.shared,
                                   .early = true,
                               },
                               &args);
    }
    return status;
}

static int32_t launch(const struct launcher *at, const struct plan *plan, const void *args)
{
    const struct hw_matmul *op = args;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    struct tiles_args tiles = {
        .a = launch_base(&op->a) + (uint64_t)m->a.offset,
        .b = launch_base(&op->b) + (uint64_t)m->b.offset,
        .bias = m->bias_type ? launch_base(&op->bias) + (uint64_t)m->bias_offset : 0,
        .c = launch_base(&op->c) + (uint64_t)m->c.offset,
        .x = at->workspace,
        .a_stride = m->a.stride[2],
        .b_stride = m->b.stride[2],
        .c_stride = m->c.stride[2],
        .rows = (int)m->n,
        .k = (int)m->k,
        .a_type = m->a_type,
        .bias_type = m->bias_type,
        .c_type = m->c_type,
        .constant = (op->b.buffer->flags & HW_BUFFER_READ_ONLY) != 0,
    };
    int32_t status = HW_OK;
    for (int64_t left = m->m; left > 0 && !status; left -= tiles.tokens) {
        tiles.eights = eights_for(left);
        tiles.tokens = (int)(left < tiles.eights * 8 ? left : tiles.eights * 8);
        status = launch_round(at, &tiles);
        if (!status)
            status = launch_tiles(at, &tiles, op->b.dtype);
        tiles.a += (uint64_t)(tiles.tokens * tiles.a_stride);
        tiles.c += (uint64_t)(tiles.tokens * tiles.c_stride);
    }
    return status;
}

kernel_plan_fn plan_matmul_tiles;
const char *plan_matmul_tiles(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const struct hw_matmul *op = args;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const int64_t rows = gemv_rows(&op->c);
    const int eights = eights_for(rows);
    const int64_t parts = (m->k / TILES_NUMBERS + TILES_PART(eights) - 1) /
                          TILES_PART(eights);
    plan->launch = launch;
    plan->workspace = (uint64_t)(parts * TILES_PART_BYTES(eights));
    if (!op->b.buffer || !is_block(op->b.dtype))
        return "b has no blocks, or is not in device memory";
    if (rows < fewest_of(op->b.dtype) || rows > MOST)
        return "c must have one batch and 5 to 64 rows (from 4 with q4_0, from 3 with q8_0)";
    if (m->k == 0 || m->k % TILES_NUMBERS || m->k > INT32_MAX / 64 || m->n > INT32_MAX / 64)
        return "k must be a multiple of 256, and n and k not too large";
    if (!is_aligned(op, m))
        return "a or b is not aligned";
    if (!has_room(op->b.buffer->device, op->b.dtype, rows))
        return "a group has too little shared memory";
    return NULL;
}
