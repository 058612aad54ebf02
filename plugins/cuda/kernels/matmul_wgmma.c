/* SPDX-License-Identifier: MIT */
/* Plans and launches matmul_wgmma.cu: many rows of a, and b stored [n,k].
 *
 * What is not in 16 bits, f32 of a and blocks of b, is made so in the workspace first: as many rows
 * of a and columns of c at a time as have room there. */
#include "../cuda.h"

#include "matmul_wgmma.h"

enum {
    FEWEST_ROWS = 17,       /* fewer are better streamed */
    MOST_ROUNDED = 1 << 14, /* rows of a that are in the workspace at a time */
    EXPANDED = 128 << 20,   /* bytes of b in the workspace, about */
    COLS = 256,             /* a multiple of the columns of most tiles */
    /* The matrix units round each sum down: after so many steps along k, it is not f32 any more. */
    MOST_K_OF_F32 = 6144
};

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

static int64_t pieces(int64_t of, int64_t size)
{
    return (of + size - 1) / size;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct size {
    int64_t m, n, k;
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

/* ---- what is computed ---- */

/* A matrix in device memory. */
struct matrix {
    uint64_t address;
    int64_t stride; /* of rows, bytes */
    int32_t type;
};

struct problem {
    struct size size;
    struct matrix a, b, c;
    uint64_t bias;
    int32_t bias_type, type; /* of bias, of the products: f16 or bf16 */
};

static bool is_half(int32_t type)
{
    return type == HW_F16 || type == HW_BF16;
}

static bool rounds(const struct problem *p)
{
    return p->a.type == HW_F32;
}

static bool expands(const struct problem *p)
{
    return !is_half(p->b.type);
}

/* Where rows of a f32 are scaled to the range of f16. */
static bool scales(const struct problem *p)
{
    return rounds(p) && p->type == HW_F16;
}

/* The rows of all batches are rows of one matrix, if b has one batch and those of a and c follow
 * each other. */
static bool is_one_matrix(const struct hw_matmul *op, const struct matmul_args *m)
{
    int64_t rows = m->m;
    for (int axis = op->c.rank - 3; axis >= 0; axis--) {
        const int at = axis - (op->c.rank - 4);
        if (op->c.extent[axis] == 1)
            continue;
        if (m->a.stride[at] != rows * m->a.stride[2] ||
            m->c.stride[at] != rows * m->c.stride[2])
            return false;
        rows *= op->c.extent[axis];
    }
    return true;
}

static int64_t batches_of(const struct hw_tensor *t)
{
    int64_t batches = 1;
    for (int axis = 0; axis < t->rank - 2; axis++)
        batches *= t->extent[axis];
    return batches;
}

static struct matrix matrix_of(const struct hw_tensor *t, const struct place *p)
{
    return (struct matrix){ launch_base(t) + (uint64_t)p->offset, p->stride[2], t->dtype };
}

static struct problem problem_of(const struct hw_matmul *op, const struct matmul_args *m)
{
    const int32_t type = is_half(op->b.dtype)   ? op->b.dtype
                         : is_half(op->a.dtype) ? op->a.dtype
                                                : HW_F16;
    return (struct problem){
        .size = { batches_of(&op->c) * m->m, m->n, m->k },
        .a = matrix_of(&op->a, &m->a),
        .b = matrix_of(&op->b, &m->b),
        .c = matrix_of(&op->c, &m->c),
        .bias = m->bias_type ? launch_base(&op->bias) + (uint64_t)m->bias_offset : 0,
        .bias_type = m->bias_type,
        .type = type,
    };
}

/* ---- the plan ---- */

/* What the copy engine takes: rows that begin at multiples of 16 bytes, and do not overlap. */
static bool can_copy(const struct matrix *x, int64_t cols)
{
    const int64_t bytes = cols * (x->type == HW_F32 ? 4 : 2);
    return x->address % 16 == 0 && x->stride % 16 == 0 && x->stride >= bytes &&
           x->stride < INT64_C(1) << 40;
}

/* Whether the result is as precise as the types of a and c, or as HW_PRECISION allows. */
static bool is_precise(const struct problem *p, bool may_round)
{
    if (may_round)
        return true;
    if (rounds(p))
        return false;
    return p->c.type == HW_F32 ? !expands(p) && p->size.k <= MOST_K_OF_F32
                               : !expands(p) || p->c.type == p->type;
}

static const char *refusal(const struct problem *p, bool may_round)
{
    const struct size *s = &p->size;
    if (s->m < FEWEST_ROWS)
        return "c has few rows";
    if (s->k < 1 || s->m > INT32_MAX / 2 || s->n > INT32_MAX / 2 || s->k > INT32_MAX / 2)
        return "the extents do not suit this row";
    if (p->b.type == HW_F32 || (is_half(p->a.type) && p->a.type != p->type))
        return "a and b have types that do not go together";
    if (!is_precise(p, may_round))
        return "16-bit units are not precise enough";
    if (rounds(p) && (s->k % 8 || s->k > 4 * WGMMA_ROUND_QUADS * WGMMA_ROUND_MOST))
        return "k does not suit this row";
    if (!can_copy(&p->a, s->k) || !can_copy(&p->c, s->n) ||
        (expands(p) ? p->b.address % 2 || p->b.stride % 2 : !can_copy(&p->b, s->k)))
        return "rows do not begin at multiples of 16 bytes";
    return NULL;
}

/* How many rows of a and columns of c are computed at a time, and where their 16 bits are. */
struct share {
    int64_t rows, cols;
    uint64_t a, scale, b, bytes; /* offsets in the workspace; its size */
};

static uint64_t round_up(int64_t bytes)
{
    return ((uint64_t)bytes + 255) / 256 * 256;
}

static struct share share_of(const struct problem *p)
{
    const struct size *s = &p->size;
    struct share share = { .rows = s->m, .cols = s->n };
    if (rounds(p) && s->m > MOST_ROUNDED)
        share.rows = MOST_ROUNDED;
    if (expands(p) && s->n > larger(EXPANDED / s->k / 2 / COLS, 1) * COLS)
        share.cols = larger(EXPANDED / s->k / 2 / COLS, 1) * COLS;
    share.scale = rounds(p) ? round_up(share.rows * s->k * 2) : 0;
    share.b = share.scale + (scales(p) ? round_up(share.rows * 4) : 0);
    share.bytes = share.b + (expands(p) ? round_up(share.cols * s->k * 2) : 0);
    return share;
}

/* ---- the launch ---- */

/* A part of c that is computed at a time. */
struct part {
    int64_t row, rows, col, cols;
};

static int32_t launch_round(const struct launcher *at, const struct problem *p,
                            const struct share *share, const struct part *part)
{
    const int64_t threads = pieces(p->size.k, 4 * WGMMA_ROUND_QUADS * 32) * 32;
    const struct wgmma_round_args args = {
        .to = at->workspace + share->a,
        .from = p->a.address + (uint64_t)(part->row * p->a.stride),
        .scale = at->workspace + share->scale,
        .to_stride = p->size.k * 2,
        .from_stride = p->a.stride,
        .k = (int)p->size.k,
    };
    return launch_kernel(at,
                         &(struct launch){ .kernel = p->type == HW_F16
                                                         ? TUNED_wgmma_round_f16
                                                         : TUNED_wgmma_round_bf16,
                                           .groups = { (unsigned)part->rows, 1, 1 },
                                           .threads = (unsigned)threads },
                         &args);
}

static int32_t launch_expand(const struct launcher *at, const struct problem *p,
                             const struct share *share, const struct part *part)
{
    const int64_t threads = part->cols * (p->size.k / WGMMA_EXPAND_NUMBERS);
    const struct wgmma_expand_args args = {
        .to = at->workspace + share->b,
        .from = p->b.address + (uint64_t)(part->col * p->b.stride),
        .from_stride = p->b.stride,
        .rows = (int)part->cols,
        .k = (int)p->size.k,
        .type = p->b.type,
    };
    return launch_kernel(
        at,
        &(struct launch){ .kernel = p->type == HW_F16 ? TUNED_wgmma_expand_f16
                                                      : TUNED_wgmma_expand_bf16,
                          .groups = { (unsigned)pieces(threads, WGMMA_EXPAND_GROUP), 1, 1 },
                          .threads = WGMMA_EXPAND_GROUP },
        &args);
}

struct box {
    int64_t rows, cols; /* of the matrix */
    int box_rows, box_cols;
};

/* Describes a matrix to the copy engine. Boxes have at most 128 bytes in a row: the swizzle that
 * their width allows. */
static int32_t describe(const struct launcher *at, const struct matrix *x,
                        const struct box *box, struct tensor_map *map)
{
    const int bytes = x->type == HW_F32 ? 4 : 2;
    const int type = x->type == HW_F32   ? TENSOR_F32
                     : x->type == HW_F16 ? TENSOR_F16
                                         : TENSOR_BF16;
    const uint64_t extents[2] = { (uint64_t)box->cols, (uint64_t)box->rows };
    const uint64_t strides[1] = { (uint64_t)x->stride };
    const uint32_t size[2] = { (uint32_t)box->box_cols, (uint32_t)box->box_rows };
    const uint32_t steps[2] = { 1, 1 };
    const int swizzle = box->box_cols * bytes == 128 ? SWIZZLE_128 : SWIZZLE_64;
    return answer(at->device,
                  at->device->cuda->tensor_map_encode(
                      map, type, 2, (void *)(uintptr_t)x->address, extents, strides, size,
                      steps, 0, swizzle, PROMOTE_256, 0),
                  "describe a matrix to the copy engine");
}

static struct matrix rows_from(const struct matrix *x, int64_t row)
{
    return (struct matrix){ x->address + (uint64_t)(row * x->stride), x->stride, x->type };
}

/* a, b and c of a part, in 16 bits. */
static int32_t describe_all(const struct launcher *at, const struct problem *p,
                            const struct share *share, const struct part *part,
                            const struct tile *tile, struct wgmma_args *args)
{
    const int64_t k = p->size.k;
    struct matrix a = rows_from(&p->a, part->row), b = rows_from(&p->b, part->col),
                  c = rows_from(&p->c, part->row);
    if (rounds(p))
        a = (struct matrix){ at->workspace + share->a, k * 2, p->type };
    if (expands(p))
        b = (struct matrix){ at->workspace + share->b, k * 2, p->type };
    c.address += (uint64_t)(part->col * (c.type == HW_F32 ? 4 : 2));
    int32_t status = describe(
        at, &a, &(struct box){ part->rows, k, args->a_rows, WGMMA_STEP }, &args->a);
    if (!status)
        status = describe(at, &b, &(struct box){ part->cols, k, tile->cols, WGMMA_STEP },
                          &args->b);
    if (!status)
        status = describe(
            at, &c,
            &(struct box){ part->rows, part->cols, WGMMA_STORE_ROWS, WGMMA_STORE_COLS },
            &args->c);
    return status;
}

static int32_t launch_product(const struct launcher *at, const struct problem *p,
                              const struct share *share, const struct part *part)
{
    enum { BAND_ROWS = 2048 };
    const struct size size = { part->rows, part->cols, p->size.k };
    const struct tile *tile = best_tile(&size, at->device->units);
    const int64_t groups = pieces(part->rows, tile->rows) * pieces(part->cols, tile->cols);
    const int bias_bytes = p->bias_type == HW_F32 ? 4 : 2;
    struct wgmma_args args = {
        .bias = p->bias ? p->bias + (uint64_t)(part->col * bias_bytes) : 0,
        .scale = scales(p) ? at->workspace + share->scale : 0,
        .m = (int)size.m,
        .n = (int)size.n,
        .k = (int)size.k,
        .band = BAND_ROWS / tile->rows,
        .a_rows = (int)smaller(tile->rows, part->rows),
        .bias_type = p->bias_type,
        .c_type = p->c.type,
    };
    const int32_t status = describe_all(at, p, share, part, tile, &args);
    if (status)
        return status;
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = p->type == HW_F16 ? tile->f16 : tile->bf16,
            .groups = { (unsigned)smaller(groups, at->device->units), 1, 1 },
            .threads = (unsigned)WGMMA_THREADS(tile->rows),
            .shared = (unsigned)WGMMA_SHARED(tile->rows, tile->cols, tile->steps) },
        &args);
}

static int32_t launch_wgmma(const struct launcher *at, const struct plan *plan,
                            const void *args)
{
    const struct problem p = problem_of(args, &plan->lowered.args.matmul);
    const struct share share = share_of(&p);
    struct part part = { 0 };
    int32_t status = HW_OK;
    for (part.row = 0; part.row < p.size.m && !status; part.row += share.rows) {
        part.rows = smaller(p.size.m - part.row, share.rows);
        if (rounds(&p))
            status = launch_round(at, &p, &share, &part);
        for (part.col = 0; part.col < p.size.n && !status; part.col += share.cols) {
            part.cols = smaller(p.size.n - part.col, share.cols);
            if (expands(&p))
                status = launch_expand(at, &p, &share, &part);
            if (!status)
                status = launch_product(at, &p, &share, &part);
        }
    }
    return status;
}

kernel_plan_fn plan_matmul_wgmma;
const char *plan_matmul_wgmma(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const struct hw_matmul *op = args;
    const char *why = lower(row->op, args, &plan->lowered);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    if (batches_of(&op->b) != 1 || !is_one_matrix(op, m))
        return "a, b and c are not one matrix each";
    const struct problem p = problem_of(op, m);
    why = refusal(&p, row->needs & HALVES);
    if (why)
        return why;
    plan->launch = launch_wgmma;
    plan->workspace = share_of(&p).bytes;
    return NULL;
}
