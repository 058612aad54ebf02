/* SPDX-License-Identifier: MIT */
/* c = a . b + bias, of floats stored in any way: products of tiles in registers. If the processor
 * multiplies pairs of bf16, this text multiplies rows of a, rounded to bf16, by rows of bf16.
 *
 * A group is a small piece of c; a thread joins the groups that it gets at once into larger pieces.
 * It computes a piece in steps along k. In each step, it packs its part of b into panels, which
 * stay in the second-level cache, and then takes a tile's rows of a at a time; their copy stays in
 * the first-level cache. The order of sums depends only on k. */
#include "tile.h"

DECLARE_PLAN(gemm);

enum {
#if defined(__AVX512F__)
    PIECE_COLS = 512, /* TILE_WORDS rows of this many words: three quarters of 1 MiB */
#else
    PIECE_COLS = 256, /* half of 512 KiB */
#endif
    FEWEST_COLS = PIECE_COLS / 4,
    PIECE_ROWS = 1024,
    FEWEST_ROWS = 128,
    GROUPS = 32 /* the least number: threads take groups in turns */
};

/* The division of c into groups of `rows` x `cols`, and of k into steps. */
struct division {
    int64_t rows, cols, down, across, step;
};

static int64_t divided(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

static struct division divide(const struct matmul_args *a, int64_t batches)
{
    const int64_t steps = a->k > TILE_DEPTH ? divided(a->k, TILE_DEPTH) : 1;
    struct division d = { .rows = PIECE_ROWS, .cols = PIECE_COLS };
    /* rows first: joining groups of one column needs no more copies */
    while (batches * divided(a->m, d.rows) * divided(a->n, d.cols) < GROUPS &&
           d.rows > FEWEST_ROWS)
        d.rows /= 2;
    while (batches * divided(a->m, d.rows) * divided(a->n, d.cols) < GROUPS &&
           d.cols > FEWEST_COLS)
        d.cols /= 2;
    d.cols = at_most(d.cols / TILE_COLS, divided(a->n, TILE_COLS)) * TILE_COLS;
    d.down = divided(a->m, d.rows);
    d.rows = divided(a->m, d.down);
    d.down = divided(a->m, d.rows);
    d.across = divided(a->n, d.cols);
    d.step = at_most(divided(divided(a->k, steps), 16) * 16, TILE_DEPTH);
    return d;
}

/* ---- a piece ---- */

/* A piece of one matrix of c, and a thread's memory for it. */
struct piece {
    const struct matmul_args *args;
    const char *a, *b, *bias;      /* the first rows of a, the first columns of b */
    char *c;                       /* the first row; its columns are numbered from 0 */
    int64_t col, rows, cols, step; /* the first column, and how many */
    int64_t packed;                /* the bytes of a panel of b; 0: it is not packed */
    float *panels, *slab, *sums;   /* sums: used if c cannot hold them */
    int64_t pitch;                 /* of sums, in floats */
};

/* A part of b for tiles: panels that are `next` bytes apart. */
struct panels {
    const char *at;
    int64_t next;
};

static int64_t bytes_of(int type)
{
    return type == HW_F32 ? 4 : 2;
}

/* Packs k .. k + depth - 1 of b, if it is not packed. */
static void make_panels(const struct piece *p, int64_t k, int64_t depth)
{
    const struct matmul_args *a = p->args;
    const int64_t bytes = bytes_of(a->b_type), stride = a->b.stride[2];
    const int64_t width = divided(p->cols, TILE_COLS) * TILE_COLS;
    if (!a->transpose_b) {
        const struct block across = { p->b + k * stride, stride, depth, p->cols };
        spread(a->b_type, &across, p->panels, PANEL_COLS * depth, width);
        return;
    }
    for (int64_t col = 0; col < width; col += PANEL_COLS) {
        const int64_t cols = at_most(p->cols - col,
                                     PANEL_COLS); /* of a missing panel: < 1 */
        const struct block along = { p->b + (cols > 0 ? col : 0) * stride + k * bytes,
                                     stride, cols, depth };
        take_block(a->b_type, true, &along, p->panels + col * depth, PANEL_COLS,
                   PANEL_COLS);
    }
}

/* Packs rows along k into panels of pairs. */
static void make_pairs(const struct piece *p, int64_t k, int64_t depth)
{
    const struct matmul_args *a = p->args;
    char *to = (char *)p->panels;
    for (int64_t col = 0; col < p->cols; col += PANEL_COLS) {
        const struct packed_rows from = {
            .rows = p->b + col * a->b.stride[2] + k * bytes_of(HW_BF16),
            .stride = a->b.stride[2],
            .count = at_most(p->cols - col, PANEL_COLS),
            .k = depth,
            .dtype = HW_BF16,
        };
        packed_write(&from, to);
        to += packed_panel_bytes(HW_BF16, depth);
    }
}

/* Widens packed numbers of 16 bits. If the last panel is missing, the remains of an earlier one are
 * multiplied, and the result is ignored. */
static void widen_panels(const struct piece *p, const char *from, int64_t depth)
{
    for (int64_t col = 0; col < p->cols; col += PANEL_COLS)
        widen_panel(p->args->b_type, from + col / PANEL_COLS * p->packed,
                    p->panels + col * depth, depth);
}

static struct panels panels_of(const struct piece *p, int64_t k, int64_t depth)
{
    const int type = p->args->b_type;
    const char *packed = p->b + k * panel_step(type);
    if (p->packed && (type == HW_F32 || PAIRS))
        return (struct panels){ packed, p->packed };
    if (p->packed)
        widen_panels(p, packed, depth);
    else if (PAIRS)
        make_pairs(p, k, depth);
    else
        make_panels(p, k, depth);
    return (struct panels){ (const char *)p->panels,
                            (int64_t)packed_panel_bytes(PAIRS ? HW_BF16 : HW_F32, depth) };
}

/* k .. k + depth - 1 of rows row .. row + rows - 1 of a, as stored. */
static struct block part_of_a(const struct piece *p, int64_t row, int64_t rows, int64_t k,
                              int64_t depth)
{
    const struct matmul_args *a = p->args;
    const int64_t bytes = bytes_of(a->a_type), stride = a->a.stride[2];
    if (a->transpose_a)
        return (struct block){ p->a + k * stride + row * bytes, stride, depth, rows };
    return (struct block){ p->a + row * stride + k * bytes, stride, rows, depth };
}

static void copy_slab(const struct piece *p, int64_t row, int64_t rows, int64_t k,
                      int64_t depth, float *to)
{
    const struct matmul_args *a = p->args;
    const struct block part = part_of_a(p, row, rows, k, depth);
    if (PAIRS)
        pair_rows(a->a_type, &part, to, TILE_PITCH);
    else
        take_block(a->a_type, a->transpose_a, &part, to, TILE_PITCH, depth);
}

/* Adds the bias to the sums and stores them in c. Sums of f32 may already be in c. */
static void finish_row(const struct piece *p, const float *sums, char *c)
{
    const struct matmul_args *a = p->args;
    for (int64_t i = 0; i < p->cols; i += LANES) {
        const int64_t n = at_most(p->cols - i, LANES);
        vf v = vf_load_part(sums + i, n);
        if (a->bias_type)
            v += vf_load_part_as(a->bias_type, p->bias, p->col + i, n);
        vf_store_part_as(a->c_type, c, p->col + i, v, n);
    }
}

/* One panel's tile. If the sums have fewer columns, they go through `part`. */
static void multiply_panel(const struct piece *p, struct tile *t, float *sums, int64_t cols)
{
    float part[TILE_ROWS * TILE_COLS];
    const bool more = t->more;
    if (cols >= TILE_COLS) {
        t->c = sums;
        t->stride = p->pitch;
        tile_multiply(HW_F32, t);
        return;
    }
    t->c = part;
    t->stride = TILE_COLS;
    t->more = false;
    tile_multiply(HW_F32, t);
    t->more = more;
    for (int y = 0; y < t->rows; y++)
        for (int64_t i = 0; i < cols; i += LANES) {
            float *to = sums + y * p->pitch + i;
            const int64_t n = at_most(cols - i, LANES);
            vf v = vf_load(part + y * TILE_COLS + i);
            if (more)
                v += vf_load_part(to, n);
            vf_store_part(to, v, n);
        }
}

/* The next rows of a, or the first rows of the next step, to prefetch while `tiles` tiles are
 * multiplied. */
static struct ahead rows_ahead(const struct piece *p, int64_t row, int64_t rows, int64_t k,
                               int64_t depth, int64_t tiles)
{
    const int64_t runs = tiles * divided(divided(depth, IN_WORD), RUN_WORDS);
    if (row + rows < p->rows)
        row += rows;
    else
        row = 0, k += depth;
    const struct block part = part_of_a(p, row, at_most(p->rows - row, rows), k,
                                        at_most(p->args->k - k, depth));
    const int64_t lines = divided(part.cols * bytes_of(p->args->a_type), 64);
    return (struct ahead){
        .at = part.from,
        .stride = part.stride,
        .lines = lines,
        .left = lines * part.rows,
        .each = runs ? divided(lines * part.rows, runs) : 0,
    };
}

/* The first panel is at `at`. Panels beyond the columns repeat the last one. */
static void set_panels(struct tile *t, int count, const char *at, int64_t next,
                       int64_t cols)
{
    for (int i = 0; i<count; i++, cols -= PANEL_COLS, at += cols> 0 ? next : 0)
        t->b[i] = at;
}

static void multiply_slab(const struct piece *p, int64_t row, int rows, int64_t k,
                          int64_t depth, const struct panels *b)
{
    const struct matmul_args *a = p->args;
    char *c = p->c + row * a->c.stride[2];
    float *sums = p->sums ? p->sums + row * p->pitch : (float *)(void *)c + p->col;
    const int64_t tiles = divided(p->cols, TILE_COLS);
    struct ahead next = rows_ahead(p, row, rows, k, depth, tiles);
    struct tile t = {
        .a = p->slab, .depth = depth, .rows = rows, .more = k > 0, .next = &next
    };
    copy_slab(p, row, rows, k, depth, p->slab);
    for (int64_t col = 0; col < p->cols; col += TILE_COLS) {
        set_panels(&t, TILE_PANELS, b->at + col / PANEL_COLS * b->next, b->next,
                   p->cols - col);
        multiply_panel(p, &t, sums + col, p->cols - col);
    }
    if (k + depth >= a->k && (p->sums || a->bias_type))
        for (int y = 0; y < rows; y++)
            finish_row(p, sums + y * p->pitch, c + y * a->c.stride[2]);
}

static void multiply_piece(const struct piece *p)
{
    const int64_t slabs = divided(p->rows, TILE_ROWS), rows = divided(p->rows, slabs);
    int64_t k = 0;
    do { /* once if k = 0 */
        const int64_t depth = at_most(p->args->k - k, p->step);
        const struct panels b = panels_of(p, k, depth);
        for (int64_t row = 0; row < p->rows; row += rows)
            multiply_slab(p, row, (int)at_most(p->rows - row, rows), k, depth, &b);
        k += p->step;
    } while (k < p->args->k);
}

/* ---- few rows and packed weights ---- */

/* All of a is copied first. Then the columns of a tile are multiplied by all rows of a, so each
 * panel is read once, from start to end. */
struct few {
    int64_t slabs, rows, steps, step; /* rows of a slab */
    int panels;                       /* of a tile */
    bool in_place;                    /* a is not copied */
};

enum { FEW_SLABS = 4, SLAB_FLOATS = TILE_ROWS * TILE_PITCH };

/* Up to this many rows of a, more panels at once are faster: they bring more sums for each number
 * of a. With f32, memory cannot deliver enough for that. With few columns, some threads would have
 * no work. */
static int64_t wide_rows(const struct matmul_args *a)
{
    const bool many = a->n >= GROUPS * WIDE_PANELS * PANEL_COLS;
    return LANES == 16 && a->b_type != HW_F32 && many ? 96 : WIDE_ROWS;
}

/* Rows of a that are few. */
static int64_t few_rows(const struct matmul_args *a)
{
    const int64_t rows = FEW_SLABS * TILE_ROWS;
    return wide_rows(a) > rows ? wide_rows(a) : rows;
}

static struct few few_of(const struct matmul_args *a)
{
    const bool wide = a->m <= wide_rows(a);
    const int64_t slabs = divided(a->m, wide ? WIDE_ROWS : TILE_ROWS);
    const struct division d = divide(a, 1);
    return (struct few){
        .slabs = slabs,
        .rows = divided(a->m, slabs),
        .steps = divided(a->k, d.step),
        .step = d.step,
        .panels = wide ? WIDE_PANELS : TILE_PANELS,
        .in_place = !PAIRS && a->m == 1 && a->a_type == HW_F32 && !a->transpose_a,
    };
}

static struct piece piece_of_few(const struct plan *plan, const struct few *few)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    return (struct piece){
        .args = a,
        .a = (char *)plan->pointer[1] + a->a.offset,
        .b = (char *)plan->pointer[2] + a->b.offset,
        .c = (char *)plan->pointer[0] + a->c.offset,
        .bias = (char *)plan->pointer[3] + a->bias_offset,
        .step = few->step,
        .packed = (int64_t)packed_panel_bytes(a->b_type, a->k),
    };
}

static void copy_few(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const struct few few = few_of(a);
    const struct piece p = piece_of_few(plan, &few);
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        const int64_t row = i / few.steps * few.rows, k = i % few.steps * few.step;
        copy_slab(&p, row, at_most(a->m - row, few.rows), k, at_most(a->k - k, few.step),
                  (float *)plan_shared(plan) + i * SLAB_FLOATS);
    }
}

/* Sets the prefetches of wide tiles in slab `slab`: a single slab prefetches its own next lines,
 * one of several slabs a share of the next step or of the next panels. */
static void set_soon(struct tile *t, const struct few *few, const struct matmul_args *a,
                     int64_t slab, int64_t next)
{
    t->soon = WIDE_SOON;
    t->later = 0;
    if (few->slabs > 1) {
        t->soon = next + t->depth * panel_step(a->b_type) / few->slabs * slab;
        t->later = PACKED_LINE / few->slabs - PACKED_LINE;
    }
}

/* The columns of a tile. */
static void multiply_few(const struct piece *p, const struct few *few, const float *slabs,
                         float *sums)
{
    const struct matmul_args *a = p->args;
    const int64_t bytes = panel_step(a->b_type);
    struct tile t = { .stride = few->panels * PANEL_COLS };
    for (int64_t step = 0; step < few->steps; step++) {
        const int64_t k = step * few->step;
        set_panels(&t, few->panels, p->b + k * bytes, p->packed, p->cols);
        t.depth = at_most(a->k - k, few->step);
        t.more = step > 0;
        const int64_t next = step + 1 < few->steps ? t.depth * bytes
                                                   : few->panels * p->packed - k * bytes;
        for (int64_t slab = 0; slab < few->slabs; slab++) {
            const int64_t row = slab * few->rows;
            t.rows = (int)at_most(a->m - row, few->rows);
            t.cold = slab == 0;
            set_soon(&t, few, a, slab, next);
            t.a = few->in_place ? (const float *)(const void *)p->a + k
                                : slabs + (slab * few->steps + step) * SLAB_FLOATS;
            t.c = sums + row * t.stride;
            (few->panels == WIDE_PANELS ? wide_tile_multiply : tile_multiply)(a->b_type,
                                                                              &t);
        }
    }
    for (int64_t row = 0; row < a->m; row++)
        finish_row(p, sums + row * t.stride, p->c + row * a->c.stride[2]);
}

static void run_few(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const struct few few = few_of(a);
    const struct piece all = piece_of_few(plan, &few);
    for (int64_t i = first; i < end; i++) {
        struct piece p = all;
        p.col = i * few.panels * PANEL_COLS;
        p.cols = at_most(a->n - p.col, few.panels * PANEL_COLS);
        p.b += i * few.panels * p.packed;
        multiply_few(&p, &few, plan_shared(plan), plan_own(plan, thread));
    }
}

static void plan_few(struct plan *plan)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const struct few few = few_of(a);
    plan->run = run_few;
    plan->groups = divided(a->n, few.panels * PANEL_COLS);
    plan->work /= a->m > 2 ? 6 : 2; /* measured against the portable kernel's estimate */
    plan->own_bytes = (uint64_t)(few.slabs * few.rows * few.panels * PANEL_COLS) *
                      sizeof(float);
    if (few.in_place)
        return;
    plan->prepare = copy_few;
    plan->prepare_groups = few.slabs * few.steps;
    plan->prepare_grain = 1 + 65536 / (few.rows * few.step);
    plan->shared_bytes = (uint64_t)(few.slabs * few.steps * SLAB_FLOATS) * sizeof(float);
}

/* ---- the row of kernels.def ---- */

static int64_t batches_of(const struct hw_matmul *op)
{
    int64_t batches = 1;
    for (int i = 0; i < op->c.rank - 2; i++)
        batches *= op->c.extent[i];
    return batches;
}

static char *matrix_of(void *base, const struct place *p, const int64_t *batch,
                       int64_t repeat0, int64_t repeat1)
{
    return (char *)base + p->offset + batch[0] / repeat0 * p->stride[0] +
           batch[1] / repeat1 * p->stride[1];
}

/* The most rows and columns of joined groups. */
static int64_t most_rows(const struct division *d)
{
    return at_most(PIECE_ROWS / d->rows, d->down) * d->rows;
}

static int64_t most_cols(const struct division *d)
{
    return at_most(PIECE_COLS / d->cols, d->across) * d->cols;
}

/* The floats of a thread's memory: the panels, the rows of a, the sums. */
static int64_t panel_floats(const struct division *d)
{
    return most_cols(d) * divided(d->step, IN_WORD);
}

static int64_t sum_floats(const struct matmul_args *a, const struct division *d)
{
    return a->c_type == HW_F32 ? 0 : most_rows(d) * most_cols(d);
}

/* The number of `left` groups, from number `row` of their column on, that make one piece: a part of
 * the column, or whole columns. */
static int64_t joined(const struct division *d, int64_t row, int64_t col, int64_t left)
{
    const int64_t most = PIECE_ROWS / d->rows;
    if (row || left < d->down || most < d->down)
        return at_most(at_most(left, d->down - row), most);
    return d->down *
           at_most(at_most(left / d->down, d->across - col), PIECE_COLS / d->cols);
}

/* The bytes of a panel of b; 0: it is not packed. */
static int64_t packed_of(const struct plan *plan)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const struct hw_matmul *op = plan->op;
    return op->b.layout ? (int64_t)packed_panel_bytes(a->b_type, a->k) : 0;
}

static void run_gemm(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const struct division d = divide(a, batches_of(plan->op));
    float *own = plan_own(plan, thread);
    struct piece p = {
        .args = a,
        .panels = own,
        .slab = own + panel_floats(&d),
        .sums = sum_floats(a, &d) ? own + panel_floats(&d) + TILE_ROWS * TILE_PITCH : NULL,
        .pitch = sum_floats(a, &d) ? most_cols(&d)
                                   : a->c.stride[2] / (int64_t)sizeof(float),
        .bias = (char *)plan->pointer[3] + a->bias_offset,
        .step = d.step,
        .packed = packed_of(plan),
    };
    for (int64_t i = first, count; i < end; i += count) {
        const int64_t matrix = i / (d.down * d.across), row = i % d.down * d.rows;
        const int64_t col = i / d.down % d.across * d.cols;
        const int64_t batch[] = { matrix / a->batch1, matrix % a->batch1 };
        count = joined(&d, i % d.down, i / d.down % d.across, end - i);
        p.col = col;
        p.rows = at_most(a->m - row, at_most(count, d.down) * d.rows);
        p.cols = at_most(a->n - col, (count > d.down ? count / d.down : 1) * d.cols);
        p.a = matrix_of(plan->pointer[1], &a->a, batch, a->a_repeat0, a->a_repeat1) +
              row * (a->transpose_a ? bytes_of(a->a_type) : a->a.stride[2]);
        p.b = matrix_of(plan->pointer[2], &a->b, batch, a->b_repeat0, a->b_repeat1) +
              (p.packed         ? col / PANEL_COLS * p.packed
               : a->transpose_b ? col * a->b.stride[2]
                                : col * bytes_of(a->b_type));
        p.c = matrix_of(plan->pointer[0], &a->c, batch, 1, 1) + row * a->c.stride[2];
        multiply_piece(&p);
    }
}

const char *PLAN(gemm)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const struct hw_matmul *op = args;
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const char *why = plan_lowered_packed(plan, row, args);
    if (!why && op->b.layout && op->b.layout != PACKED_LAYOUT)
        why = "b: this row does not take packed weights of this layout";
    if (!why && op->b.layout && !op->transpose_b)
        why = "b: packed weights are stored [N,K], with transpose_b";
    if (why || !plan->groups)
        return why;
    const int64_t batches = batches_of(args);
    if (op->b.layout && batches == 1 && a->m <= few_rows(a)) {
        plan_few(plan);
        return NULL;
    }
    const struct division d = divide(a, batches);
    plan->run = run_gemm;
    plan->groups = batches * d.down * d.across;
    plan->work /= 6; /* measured against the portable kernel's estimate */
    plan->own_bytes =
        (uint64_t)(panel_floats(&d) + TILE_ROWS * TILE_PITCH + sum_floats(a, &d)) *
        sizeof(float);
    return NULL;
}
