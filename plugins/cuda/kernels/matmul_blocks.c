/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_blocks.cu: 17 to 2048 rows of a, and blocks of b stored [n,k]. One
 * launch rounds a, like matmul_convert.cu, but stores it in another order. */
#include "gemv_plan.h"
#include "matmul_plan.h"

#include "matmul_blocks.h"
#include "matmul_convert.h"

enum {
    FEWEST = 17, /* rows of a: with fewer, matmul_tiles_int8 is faster */
    MOST = 2048, /* the largest number that was measured */
    MOST_K = 4 * ROUND_QUADS * ROUND_MOST /* 32768: a group rounds a row of a */
};

/* ---- the tile ---- */

static const int tiles[] = { 64, 128, 256 };

static enum tuned kernel_of(int32_t type, int tokens)
{
    static const enum family families[] = { FAMILY_blocks_64, FAMILY_blocks_128,
                                            FAMILY_blocks_256 };
    return tuned_of(families[tokens / 128], type); /* 0, 1, 2 */
}

static int shared_of(int32_t type, int tokens)
{
    const int steps = BLOCKS_STEPS(tokens);
    return steps * BLOCKS_STEP_BYTES(tokens) + BLOCKS_BARRIERS(steps) +
           BLOCKS_CELLS(type, tokens, steps) * BLOCKS_CELL_BYTES(type);
}

/* The division of a product: tiles of a, and parts of everything else, with a pair of groups for
 * each. */
struct division {
    int tokens, across, parts;
};

/* The number of parts of tiles_of_b * cells cells; each part has a pair of groups. If all parts
 * have equally many cells, wherever they begin, all pairs have work, but most parts begin or end
 * within a tile, and the sums of such tiles pass through memory. If parts have equally many whole
 * tiles, or tiles equally many parts, fewer sums do, but pairs may be idle. The second way is
 * chosen if less than about 14 % of the pairs are idle. */
static int64_t parts_of(int64_t tiles_of_b, int64_t cells, int64_t pairs)
{
    const int64_t anywhere = smaller(tiles_of_b * cells, pairs);
    int64_t aligned;
    if (tiles_of_b > pairs) {
        const int64_t each = pieces(tiles_of_b, pairs);
        if (tiles_of_b % each) /* parts are equal, so they would not be whole tiles */
            return anywhere;
        aligned = tiles_of_b / each;
    } else {
        aligned = tiles_of_b * smaller(pairs / tiles_of_b, cells);
    }
    return aligned * 9 > anywhere * 8 - anywhere / 4 ? aligned : anywhere;
}

/* The approximate number of cycles for the cells of a part and for the sums that it passes on,
 * measured on an H100. */
static int64_t cycles_of(const struct size *s, int tokens, int64_t pairs,
                         struct division *division)
{
    enum { CELL = 1300, TOKEN = 12, SUMS = 20 };
    const int64_t across = pieces(s->m, tokens), of_b = pieces(s->n, BLOCKS_TILE);
    const int64_t cells = s->k / BLOCKS_NUMBERS;
    if (across > pairs)
        return INT64_MAX;
    const int64_t parts = parts_of(of_b, cells, pairs / across);
    const int64_t each = pieces(of_b * cells, parts);
    *division = (struct division){ tokens, (int)across, (int)parts };
    return each * (CELL + tokens * TOKEN) + (each % cells ? SUMS * tokens : 0);
}

static struct division divide(const struct size *s, int units)
{
    struct division best = { 0 };
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        struct division division = { 0 };
        const int64_t cycles = cycles_of(s, tiles[i], units / BLOCKS_PAIR, &division);
        if (cycles < least) {
            least = cycles;
            best = division;
        }
    }
    return best;
}

/* ---- the workspace ---- */

/* The places of the rows of a in f16, of their scales, and of sums. */
struct places {
    uint64_t scale, sums, bytes;
};

static struct places places_of(const struct size *s, const struct division *d)
{
    const int64_t sums = (int64_t)d->parts * d->across * BLOCKS_PAIR * 2 *
                         BLOCKS_SUMS_BYTES(d->tokens);
    struct places places = { .scale = round_up(s->m * s->k * 2) };
    places.sums = places.scale + round_up(s->m * 4);
    places.bytes = places.sums + (uint64_t)sums;
    return places;
}

/* ---- the plan ---- */

static int64_t row_bytes(const struct hw_matmul *op, const struct matmul_args *m)
{
    return m->k / hw_dtype_block(op->b.dtype) * hw_dtype_bytes(op->b.dtype);
}

static bool is_aligned(const struct hw_matmul *op, const struct matmul_args *m)
{
    const uint64_t a = launch_base(&op->a) + (uint64_t)m->a.offset;
    const uint64_t b = launch_base(&op->b) + (uint64_t)m->b.offset;
    const uint64_t c = launch_base(&op->c) + (uint64_t)m->c.offset;
    const uint64_t align_a = op->a.dtype == HW_F32 ? 16 : 8;
    return (a | (uint64_t)m->a.stride[2]) % align_a == 0 &&
           (b | (uint64_t)m->b.stride[2]) % 16 == 0 &&
           (c | (uint64_t)m->c.stride[2]) % 4 == 0;
}

static struct size size_of(const struct matmul_args *m)
{
    return (struct size){ m->m, m->n, m->k };
}

static const char *refusal(const struct hw_matmul *op, const struct matmul_args *m)
{
    const int64_t rows = gemv_rows(&op->c);
    if (!op->b.buffer || !is_block(op->b.dtype))
        return "b has no blocks, or is not in device memory";
    if (rows < FEWEST || rows > MOST)
        return "c must have one batch and 17 to 2048 rows";
    const bool in_words = m->k % (2 * BLOCKS_NUMBERS) == 0 || op->b.dtype != HW_Q6_K;
    if (m->k == 0 || m->k % BLOCKS_NUMBERS || m->k > MOST_K || !in_words)
        return "k must be a multiple of 256 (if b is q6_K, of 512), up to 32768";
    if ((m->n % 2 && op->c.dtype != HW_F32) || m->n > INT32_MAX / 1024)
        return "n must be even, if c has 16 bits, and not too large";
    if (!is_aligned(op, m))
        return "a, b or c is not aligned";
    if (m->b.stride[2] < row_bytes(op, m))
        return "b has one row, or rows that overlap";
    const struct device *device = op->b.buffer->device;
    if (device->shared_most < BLOCKS_SHARED)
        return "a group has too little shared memory";
    return NULL;
}

/* ---- the launch ---- */

static int32_t launch_round(const struct launcher *at, const struct hw_matmul *op,
                            const struct matmul_args *m, uint64_t scale)
{
    const struct convert_args args = {
        .to = at->workspace,
        .from = launch_base(&op->a) + (uint64_t)m->a.offset,
        .scale = scale,
        .to_stride = m->k * 2,
        .from_stride = m->a.stride[2],
        .k = (int)m->k,
        .type = m->a_type,
    };
    return launch_kernel(
        at,
        &(struct launch){ .kernel = TUNED_convert_round_mixed,
                          .groups = { (unsigned)m->m, 1, 1 },
                          .threads = (unsigned)pieces(m->k, 4 * ROUND_QUADS * 32) * 32,
                          .early = true },
        &args);
}

/* Describes a: rows of f16 in the workspace; and b: blocks as words. The copy engine takes no
 * stride of 0, and two blocks of q6_K are whole words. */
static int32_t describe_both(const struct launcher *at, const struct hw_matmul *op,
                             const struct matmul_args *m, struct blocks_args *args)
{
    const int32_t status = box_describe(at, at->workspace,
                                        &(struct box){ TENSOR_F16, m->m, m->k, m->k * 2,
                                                       args->a_rows, BLOCKS_STEP,
                                                       SWIZZLE_128 },
                                        &args->a);
    if (status)
        return status;
    return box_describe(at, launch_base(&op->b) + (uint64_t)m->b.offset,
                        &(struct box){ TENSOR_U32, m->n, row_bytes(op, m) / 4,
                                       m->b.stride[2], BLOCKS_ROWS,
                                       BLOCKS_ROW_APART(op->b.dtype) / 4, SWIZZLE_NONE },
                        &args->b);
}

static int32_t launch(const struct launcher *at, const struct plan *plan, const void *given)
{
    const struct hw_matmul *op = given;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct size size = size_of(m);
    const struct division d = divide(&size, at->device->units);
    const struct places places = places_of(&size, &d);
    struct blocks_args args = {
        .c = launch_base(&op->c) + (uint64_t)m->c.offset,
        .bias = m->bias_type ? launch_base(&op->bias) + (uint64_t)m->bias_offset : 0,
        .scale = at->workspace + places.scale,
        .counters = at->workspace - WORKSPACE_COUNTERS,
        .sums = at->workspace + places.sums,
        .c_stride = m->c.stride[2],
        .m = (int)m->m,
        .n = (int)m->n,
        .cells = (int)(m->k / BLOCKS_NUMBERS),
        .across = d.across,
        .parts = d.parts,
        .a_rows = (int)pieces(smaller(m->m, d.tokens), 16) * 8,
        .bias_type = m->bias_type,
        .c_type = m->c_type,
        .constant = (op->b.buffer->flags & HW_BUFFER_READ_ONLY) != 0,
    };
    int32_t status = describe_both(at, op, m, &args);
    if (!status)
        status = launch_round(at, op, m, args.scale);
    if (status)
        return status;
    return launch_kernel(
        at,
        &(struct launch){ .kernel = kernel_of(op->b.dtype, d.tokens),
                          .groups = { (unsigned)(d.parts * d.across * BLOCKS_PAIR), 1, 1 },
                          .threads = BLOCKS_THREADS,
                          .shared = (unsigned)shared_of(op->b.dtype, d.tokens),
                          .early = true },
        &args);
}

kernel_plan_fn plan_matmul_blocks;
const char *plan_matmul_blocks(struct plan *plan, const struct kernel_row *row,
                               const void *args)
{
    const struct hw_matmul *op = args;
    const char *why = launch_lower(plan, row, args);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    plan->launch = launch;
    why = refusal(op, m);
    if (why)
        return why;
    const struct device *device = op->b.buffer->device;
    const struct size size = size_of(m);
    const struct division d = divide(&size, device->units);
    if (!d.parts)
        return "the device has too few multiprocessors";
    plan->workspace = places_of(&size, &d).bytes;
    return NULL;
}
