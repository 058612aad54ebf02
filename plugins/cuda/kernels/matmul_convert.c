/* SPDX-License-Identifier: MIT */
/* Plans products of many rows, and launches the conversions of matmul_convert.cu that they need. */
#include "matmul_plan.h"

#include "matmul_convert.h"

enum {
    FEWEST_ROWS = 2,
    FEWEST_OF_CONVERTED = 9, /* with fewer, the conversion of b takes longer */
    MOST_ROUNDED = 1 << 14,  /* rows of a that are in the workspace at a time */
    EXPANDED = 256 << 20,    /* bytes of b in the workspace, at most, */
    EXPANDED_SHARE = 64, /* and the share of the device's memory, but at least COLS rows */
    COLS = 256,          /* a multiple of the columns of most tiles */
    LEAST_OF_BATCH = 1 << 24, /* multiply-adds, so that a launch for each batch pays off */
    /* The matrix units round each sum down: beyond this many steps along k, the result is less
     * exact than f32. */
    MOST_K_OF_F32 = 6144
};

int32_t box_describe(const struct launcher *at, uint64_t address, const struct box *box,
                     struct tensor_map *map)
{
    const uint64_t extents[2] = { (uint64_t)box->cols, (uint64_t)box->rows };
    const uint64_t strides[1] = { (uint64_t)box->stride };
    const uint32_t size[2] = { (uint32_t)box->box_cols, (uint32_t)box->box_rows };
    const uint32_t steps[2] = { 1, 1 };
    return answer(at->device,
                  at->device->cuda->tensor_map_encode(
                      map, box->type, 2, (void *)(uintptr_t)address, extents, strides, size,
                      steps, 0, box->swizzle, PROMOTE_256, 0),
                  "describe a matrix to the copy engine");
}

/* ---- what is computed ---- */

/* One matrix of each operand; there may be more of them. */
struct problem {
    struct size size;
    struct matrix a, b, c;
    uint64_t bias;
    int32_t bias_type, type; /* of bias, of the products */
    int64_t batches[2];
    int64_t expanded; /* bytes of b in the workspace, about */
};

static int64_t bytes_of(int32_t type)
{
    return type == HW_F32 ? 4 : 2;
}

static bool converts(const struct problem *p, const struct matrix *x)
{
    return x->type != p->type;
}

/* Whether a is rounded to the type of the products. */
static bool rounds(const struct problem *p)
{
    return converts(p, &p->a) && p->type != HW_F32;
}

/* Whether rows of a are scaled to the range of f16. */
static bool scales(const struct problem *p)
{
    return rounds(p) && p->type == HW_F16;
}

/* The rows of all batches are rows of one matrix if b has one batch, and the batches of a and of c
 * are contiguous. */
static bool is_one_matrix(const struct hw_matmul *op, const struct matmul_args *m)
{
    int64_t rows = m->m;
    for (int axis = 0; axis < op->b.rank - 2; axis++)
        if (op->b.extent[axis] != 1)
            return false;
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

/* Blocks become f16, which has three more bits than bf16, unless a and c are bf16. */
static int32_t half_of(const struct hw_matmul *op)
{
    const bool bf16_is_enough = op->a.dtype == HW_BF16 && op->c.dtype == HW_BF16;
    return is_half(op->b.dtype) ? op->b.dtype : bf16_is_enough ? HW_BF16 : HW_F16;
}

/* A card with little memory may have none left for a large workspace. */
static int64_t expanded_of(const struct hw_matmul *op)
{
    const struct device *device = op->b.buffer ? op->b.buffer->device : NULL;
    const uint64_t share = device ? device->memory / EXPANDED_SHARE : 0;
    return share < EXPANDED ? (int64_t)share : EXPANDED;
}

static struct problem problem_of(const struct hw_matmul *op, const struct matmul_args *m,
                                 int32_t type)
{
    const bool one = is_one_matrix(op, m);
    const int64_t batches = batches_of(&op->c);
    return (struct problem){
        .size = { one ? batches * m->m : m->m, m->n, m->k },
        .a = matrix_of(&op->a, &m->a),
        .b = matrix_of(&op->b, &m->b),
        .c = matrix_of(&op->c, &m->c),
        .bias = m->bias_type ? launch_base(&op->bias) + (uint64_t)m->bias_offset : 0,
        .bias_type = m->bias_type,
        .type = type ? type : half_of(op),
        .batches = { one ? 1 : batches / larger(m->batch1, 1), one ? 1 : m->batch1 },
        .expanded = expanded_of(op),
    };
}

/* The matrices of batch i0, i1. */
static struct problem batch_of(const struct problem *p, const struct matmul_args *m,
                               int64_t i0, int64_t i1)
{
    struct problem batch = *p;
    batch.a.address +=
        (uint64_t)(i0 / m->a_repeat0 * m->a.stride[0] + i1 / m->a_repeat1 * m->a.stride[1]);
    batch.b.address +=
        (uint64_t)(i0 / m->b_repeat0 * m->b.stride[0] + i1 / m->b_repeat1 * m->b.stride[1]);
    batch.c.address += (uint64_t)(i0 * m->c.stride[0] + i1 * m->c.stride[1]);
    return batch;
}

/* ---- the plan ---- */

/* Whether rows begin at multiples of 16 bytes (blocks: of 2 bytes), in all batches, and do not
 * overlap. */
static bool is_aligned(const struct problem *p, const struct matrix *x,
                       const struct place *at, int64_t cols)
{
    const uint64_t unit = is_block(x->type) ? 2 : 16;
    const uint64_t batches = (p->batches[0] > 1 ? (uint64_t)at->stride[0] : 0) |
                             (p->batches[1] > 1 ? (uint64_t)at->stride[1] : 0);
    if ((x->address | (uint64_t)x->stride | batches) % unit)
        return false;
    return is_block(x->type) ||
           (x->stride >= cols * bytes_of(x->type) && x->stride < INT64_C(1) << 40);
}

/* Whether the result is as precise as the types of a and c, or as HW_PRECISION allows. */
static bool is_precise(const struct problem *p, bool may_round)
{
    if (may_round || p->type == HW_F32)
        return true;
    if (rounds(p))
        return false;
    return p->c.type == HW_F32 ? !converts(p, &p->b) && p->size.k <= MOST_K_OF_F32
                               : !converts(p, &p->b) || p->c.type == p->type;
}

static const char *refusal(const struct problem *p, const struct matmul_args *m,
                           bool may_round)
{
    const struct size *s = &p->size;
    if (s->m < (converts(p, &p->b) ? FEWEST_OF_CONVERTED : FEWEST_ROWS))
        return "c has fewer rows than this kernel needs: 2, or 9 if b has to be converted";
    if (s->k < 1 || s->m > INT32_MAX / 2 || s->n > INT32_MAX / 2 || s->k > INT32_MAX / 8)
        return "k is 0, or an extent is too large";
    if (p->batches[0] * p->batches[1] != 1 && s->m * s->n < LEAST_OF_BATCH / s->k)
        return "a batch is too small for a launch of its own";
    if (p->b.type == HW_F32 && p->type != HW_F32)
        return "b is f32";
    if (!is_precise(p, may_round))
        return "16-bit units are not precise enough";
    if ((converts(p, &p->a) || converts(p, &p->b)) && s->k % CONVERT_NUMBERS)
        return "k must be a multiple of 16 if a or b has to be converted";
    if (rounds(p) && s->k > 4 * ROUND_QUADS * ROUND_MOST)
        return "k is too large to round rows of a";
    if (!is_aligned(p, &p->a, &m->a, s->k) || !is_aligned(p, &p->b, &m->b, s->k) ||
        !is_aligned(p, &p->c, &m->c, s->n))
        return "rows do not begin at multiples of 16 bytes";
    return NULL;
}

/* The rows of a and columns of c that are computed at a time, and the places of converted
 * operands. */
struct share {
    int64_t rows, cols;
    uint64_t a, scale, b, bytes; /* offsets in the workspace; its size */
};

static struct share share_of(const struct problem *p)
{
    const struct size *s = &p->size;
    const bool a = converts(p, &p->a), b = converts(p, &p->b);
    const int64_t row = s->k * bytes_of(p->type);
    struct share share = { .rows = s->m, .cols = s->n };
    if (a)
        share.rows = smaller(s->m, MOST_ROUNDED);
    if (b)
        share.cols = smaller(s->n, larger(p->expanded / row / COLS, 1) * COLS);
    share.scale = a ? round_up(share.rows * row) : 0;
    share.b = share.scale + (scales(p) ? round_up(share.rows * 4) : 0);
    share.bytes = share.b + (b ? round_up(share.cols * row) : 0);
    return share;
}

const char *product_plan(struct plan *plan, const struct kernel_row *row,
                         const struct hw_matmul *op, int32_t type)
{
    const char *why = launch_lower(plan, row, op);
    if (why)
        return why;
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct problem p = problem_of(op, m, type);
    why = refusal(&p, m, row->needs & HALVES);
    if (!why)
        plan->workspace = share_of(&p).bytes;
    return why;
}

/* ---- the launch ---- */

/* `rows` of `x`, from row `first` on. */
struct rows {
    const struct matrix *x;
    int64_t first, rows;
};

static struct matrix rows_from(const struct matrix *x, int64_t row)
{
    return (struct matrix){ x->address + (uint64_t)(row * x->stride), x->stride, x->type };
}

/* Sets `out` to rows of a matrix in the type of the products. If they have to be converted, they
 * are in the workspace at `to`. `scale`: an address for the scales of rows. */
static int32_t convert(const struct launcher *at, const struct problem *p,
                       const struct rows *rows, uint64_t to, uint64_t scale,
                       struct matrix *out)
{
    const int64_t k = p->size.k;
    const struct matrix from = rows_from(rows->x, rows->first);
    *out = from;
    if (!converts(p, rows->x))
        return HW_OK;
    *out = (struct matrix){ to, k * bytes_of(p->type), p->type };
    const bool round = rounds(p) && !is_block(from.type);
    const int64_t threads = round ? pieces(k, 4 * ROUND_QUADS * 32) * 32
                                  : smaller(pieces(k, CONVERT_NUMBERS * 32) * 32,
                                            CONVERT_GROUP);
    const struct convert_args args = {
        .to = out->address,
        .from = from.address,
        .scale = scale,
        .to_stride = out->stride,
        .from_stride = from.stride,
        .k = (int)k,
        .type = from.type,
    };
    return launch_kernel(
        at,
        &(struct launch){
            .kernel = tuned_of(round ? FAMILY_convert_round : FAMILY_convert, p->type),
            .groups = { (unsigned)rows->rows, 1, 1 },
            .threads = (unsigned)threads },
        &args);
}

/* A part of c that is computed at a time. */
struct part {
    int64_t row, rows, col, cols;
};

static int32_t launch_columns(const struct launcher *at, const struct problem *p,
                              const struct share *share, const struct part *part,
                              struct product *product, multiply_fn *multiply)
{
    const int32_t status = convert(at, p, &(struct rows){ &p->b, part->col, part->cols },
                                   at->workspace + share->b, 0, &product->b);
    if (status)
        return status;
    product->size.n = part->cols;
    product->c = rows_from(&p->c, part->row);
    product->c.address += (uint64_t)(part->col * bytes_of(p->c.type));
    product->bias = p->bias ? p->bias + (uint64_t)(part->col * bytes_of(p->bias_type)) : 0;
    return multiply(at, product);
}

static int32_t launch_rows(const struct launcher *at, const struct problem *p,
                           const struct share *share, struct part *part,
                           multiply_fn *multiply)
{
    struct product product = {
        .size = { part->rows, 0, p->size.k },
        .scale = scales(p) ? at->workspace + share->scale : 0,
        .bias_type = p->bias_type,
        .type = p->type,
    };
    int32_t status = convert(at, p, &(struct rows){ &p->a, part->row, part->rows },
                             at->workspace + share->a, product.scale, &product.a);
    for (part->col = 0; part->col < p->size.n && !status; part->col += share->cols) {
        part->cols = smaller(p->size.n - part->col, share->cols);
        status = launch_columns(at, p, share, part, &product, multiply);
    }
    return status;
}

static int32_t launch_batch(const struct launcher *at, const struct problem *p,
                            multiply_fn *multiply)
{
    const struct share share = share_of(p);
    struct part part = { 0 };
    int32_t status = HW_OK;
    for (part.row = 0; part.row < p->size.m && !status; part.row += share.rows) {
        part.rows = smaller(p->size.m - part.row, share.rows);
        status = launch_rows(at, p, &share, &part, multiply);
    }
    return status;
}

int32_t product_launch(const struct launcher *at, const struct plan *plan,
                       const struct hw_matmul *op, int32_t type, multiply_fn *multiply)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct problem p = problem_of(op, m, type);
    int32_t status = HW_OK;
    for (int64_t i0 = 0; i0 < p.batches[0] && !status; i0++)
        for (int64_t i1 = 0; i1 < p.batches[1] && !status; i1++) {
            const struct problem batch = batch_of(&p, m, i0, i1);
            status = launch_batch(at, &batch, multiply);
        }
    return status;
}
