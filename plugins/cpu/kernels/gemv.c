/* SPDX-License-Identifier: MIT */
/* c = a . b + bias for few rows of a (decoding), all floats. Each number of b is read from memory
 * once and used for all rows of a. The bits of a row of c do not depend on the number of rows.
 *
 * If b is stored [n,k], as weights are, these are dot products with several rows of b at once.
 * Weights are not copied, so up to some tens of rows of a take less time than with panels (gemm.c).
 * As many rows as have sums in registers are multiplied by a strip of b; the next rows follow while
 * the strip is in the cache. If b is stored [k,n], its rows are scaled by the numbers of a and
 * added up. */
#include "words.h"

DECLARE_PLAN(gemv);

enum {
#if defined(__AVX2__) && !defined(__AVX512F__)
    SUMS = 12,    /* that stay in registers */
    DOT_ROWS = 4, /* rows of a that dot products are made of at once */
    /* more, if there are no others and b has 16 bits, which are converted each time */
    ONCE_ROWS = 6,
#else
    SUMS = 24,
    DOT_ROWS = 8,
#if defined(HAS_PAIRS)
    ONCE_ROWS = 4, /* more are split in halves: in one pass, they would wait for memory */
#else
    ONCE_ROWS = DOT_ROWS,
#endif
#endif
/* HALVES_FROM to HALVES_TO rows of a are split in halves if two strips have at most TWO_STRIPS
 * bytes: then the second-level cache holds them and the rows. See in_halves(). */
#if defined(__AVX512F__)
    HALVES_FROM = 4,
    HALVES_TO = 5,
    TWO_STRIPS = 768 << 10,
#elif defined(__AVX2__)
    HALVES_FROM = 3,
    HALVES_TO = 4,
    TWO_STRIPS = 640 << 10,
#else
    HALVES_FROM = 1, /* none */
    HALVES_TO = 0,
    TWO_STRIPS = 0,
#endif
    UNCACHED = 32 << 20, /* bytes of b that caches are taken not to hold */
    MOST_DOTS = DOT_ROWS > ONCE_ROWS ? DOT_ROWS : ONCE_ROWS,
    AT_ONCE = 4, /* rows of b: more are more streams than the processor follows */
    COLS = 24,   /* of c in a group: whole steps of 1, 2, 3 and 4 rows of b */
    /* vectors of columns at once: as many as SUMS allows, fewer if rows are few */
    ACROSS = 6,
    AHEAD = 2048, /* how far ahead memory is prefetched, in bytes */
    LINE = 64,
    /* rows a multiple of this apart share few sets of a cache */
    SAME_PLACES = 1024
};

/* The operands of one step, from a row of b of `type` and from a row of a: floats or, if the
 * instructions multiply f16 or pairs of bf16, two vectors of these, the only type of such a row.
 * With f16, the bits of the sums are the same. */
#if defined(HAS_HALVES)
enum { X_TYPE = HW_F16, X_BYTES = 2, STEP = 2 * LANES };
typedef vh step;

INLINE void store_x(void *to, vf v)
{
    vf_store_f16(to, v);
}

INLINE step load_step(int type, const void *row, int64_t i)
{
    (void)type;
    return vh_load((const uint16_t *)row + i);
}

INLINE step load_part(int type, const void *row, int64_t i, int64_t n)
{
    (void)type;
    return vh_load_part((const uint16_t *)row + i, n);
}

INLINE vf add_step(vf sum, step a, step b)
{
    return vf_add_halves(sum, a, b);
}
#elif defined(HAS_PAIRS)
enum { X_TYPE = HW_BF16, X_BYTES = 2, STEP = 2 * LANES };
typedef vf step;

INLINE void store_x(void *to, vf v)
{
    vf_store_pairs(to, v);
}

INLINE step load_step(int type, const void *row, int64_t i)
{
    (void)type;
    return vf_load((const float *)(const void *)((const uint16_t *)row + i));
}

INLINE step load_part(int type, const void *row, int64_t i, int64_t n)
{
    uint16_t some[STEP] = { 0 };
    memcpy(some, (const uint16_t *)row + i, (size_t)n * sizeof *some);
    return load_step(type, some, 0);
}

INLINE vf add_step(vf sum, step a, step b)
{
    return vf_dot_pairs(sum, a, b);
}
#else
enum { X_TYPE = HW_F32, X_BYTES = 4, STEP = LANES };
typedef vf step;

INLINE void store_x(void *to, vf v)
{
    vf_store(to, v);
}

INLINE step load_step(int type, const void *row, int64_t i)
{
    return vf_load_as(type, row, i);
}

INLINE step load_part(int type, const void *row, int64_t i, int64_t n)
{
    return vf_load_part_as(type, row, i, n);
}

INLINE vf add_step(vf sum, step a, step b)
{
    return vf_fma(a, b, sum);
}
#endif

/* A part of the result: `cols` columns of `m` rows of one matrix. */
struct strip {
    const char *b; /* the first of its rows, or of its columns */
    int64_t b_stride, k, cols;
    const char *x; /* the rows of a, of X_TYPE */
    int64_t x_stride;
    int m;
    /* the current part of the rows of a, from 0 on, and the number of parts */
    int time, times;
    float out[MATMUL_VEC_ROWS][ACROSS * LANES > COLS ? ACROSS *LANES : COLS];
};

INLINE int64_t bytes_of(int type)
{
    return type == HW_F32 ? 4 : 2;
}

/* ---- b [n,k] ---- */

/* Rows of b that are multiplied at the same time by m rows of a. */
INLINE int rows_for(int m)
{
    return SUMS / m < AT_ONCE ? SUMS / m : AT_ONCE;
}

/* Prefetches a line into the second-level cache: the first-level cache allows too few outstanding
 * misses to read memory at full speed. A request is dropped if too many are outstanding, so with
 * AVX-512 each line is requested twice, except for f32 with few rows of a: this raised 65 % of the
 * reading speed to 85 % (AMD EPYC Zen 4, f16). */
INLINE void ask_for(int type, int m, const char *row, int64_t ahead)
{
    ASK_FOR(row, ahead, 2);
    if (LANES == 16 && (type != HW_F32 || m > 4))
        ASK_FOR(row, ahead, 2);
}

/* The prefetch distance in bytes from the start of a row of b: for the first step, and the increase
 * per step. */
struct ahead {
    int64_t from, each;
};

/* Two pointers and multiples of a stride reach all rows of a. Compilers would keep a pointer for
 * each row, and run out of registers. */
#define IN_REGISTER(pointer) __asm__("" : "+r"(pointer))

/* Adds the products of elements first .. end - 1, in whole steps. */
INLINE void add_whole(int type, int m, const struct strip *s, const char *const *row,
                      int64_t first, int64_t end, struct ahead ahead, vf *sum)
{
    const int rows = rows_for(m);
    const int64_t stride = s->x_stride;
    const char *x0 = s->x, *x4 = x0 + 4 * stride;
    for (int64_t i = first; i < end; i += STEP, ahead.from += ahead.each) {
        step w[AT_ONCE];
        IN_REGISTER(x0);
        IN_REGISTER(x4);
        EACH (r, rows) {
            ask_for(type, m, row[r], ahead.from);
            w[r] = load_step(type, row[r], i);
        }
        EACH (y, m) {
            const char *at = y < 4 ? x0 + y * stride : x4 + (y - 4) * stride;
            const step x = load_step(X_TYPE, at, i);
            EACH (r, rows)
                sum[y * rows + r] = add_step(sum[y * rows + r], w[r], x);
        }
    }
}

INLINE void add_rest(int type, int m, const struct strip *s, const char *const *row,
                     int64_t first, vf *sum)
{
    const int rows = rows_for(m);
    const int64_t n = s->k - first;
    for (int y = 0; y < m; y++) {
        const step x = load_part(X_TYPE, s->x + y * s->x_stride, first, n);
        for (int r = 0; r < rows; r++)
            sum[y * rows + r] = add_step(sum[y * rows + r],
                                         load_part(type, row[r], first, n), x);
    }
}

/* Computes columns from `col` on. If there are fewer, the last one is computed again. */
INLINE void dot_rows(int type, int m, struct strip *s, int64_t col)
{
    const int rows = rows_for(m);
    const int64_t whole = s->k / STEP * STEP, bytes = bytes_of(type), each = STEP * bytes;
    const char *row[AT_ONCE];
    vf sum[SUMS];
    EACH (r, rows)
        row[r] = s->b + (col + r < s->cols ? col + r : s->cols - 1) * s->b_stride;
    EACH (i, m * rows)
        sum[i] = vf_set(0);
    if (s->times > 1) {
        /* each time, a part of the next strip */
        const struct ahead below = {
            s->cols * s->b_stride + whole * bytes / s->times * s->time, each / s->times
        };
        add_whole(type, m, s, row, 0, whole, below, sum);
    } else {
        /* near the end of a row, prefetch the next rows */
        const int64_t near = whole - AHEAD / bytes > 0
                                 ? (whole - AHEAD / bytes) / STEP * STEP
                                 : 0;
        add_whole(type, m, s, row, 0, near, (struct ahead){ AHEAD, each }, sum);
        add_whole(type, m, s, row, near, whole, (struct ahead){ rows * s->b_stride, each },
                  sum);
    }
    if (whole < s->k)
        add_rest(type, m, s, row, whole, sum);
    EACH (y, m)
        EACH (r, rows)
            s->out[y][col + r] = vf_sum(sum[y * rows + r]);
}

INLINE void dot_strip(int type, int m, struct strip *s)
{
    for (int64_t col = 0; col < s->cols; col += rows_for(m))
        dot_rows(type, m, s, col);
}

/* ---- b [k,n] ---- */

/* Vectors of columns that are added up at the same time for m rows of a. */
INLINE int across_for(int m)
{
    return SUMS / m < ACROSS ? SUMS / m : ACROSS;
}

/* The `width` vectors of columns if `whole`; otherwise only those before the last column. */
INLINE void across_strip(int type, int m, bool whole, struct strip *s)
{
    const int width = across_for(m);
    const int64_t soon = AHEAD / 256 * s->b_stride;
    vf sum[SUMS];
    EACH (i, m * width)
        sum[i] = vf_set(0);
    for (int64_t k = 0; k < s->k; k++) {
        const char *row = s->b + k * s->b_stride;
        vf w[ACROSS];
        EACH (v, width) {
            const int64_t at = v * LANES, left = s->cols - at;
            ask_for(type, m, row, soon + at * bytes_of(type));
            w[v] = whole || left >= LANES
                       ? vf_load_as(type, row, at)
                       : vf_load_part_as(type, row, left > 0 ? at : 0, left > 0 ? left : 0);
        }
        EACH (y, m) {
            const vf x = vf_set(((const float *)(const void *)(s->x + y * s->x_stride))[k]);
            EACH (v, width)
                sum[y * width + v] = vf_fma(w[v], x, sum[y * width + v]);
        }
    }
    EACH (y, m)
        EACH (v, width)
            vf_store(s->out[y] + v * LANES, sum[y * width + v]);
}

/* ---- both ---- */

/* Makes the number of rows a constant in each branch. */
INLINE void by_rows(int type, bool across, struct strip *s)
{
#define ROWS(m)                                                                            \
    case m:                                                                                \
        if (!across && m <= MOST_DOTS)                                                     \
            dot_strip(type, m, s);                                                         \
        if (across && s->cols == across_for(m) * LANES)                                    \
            across_strip(type, m, true, s);                                                \
        else if (across)                                                                   \
            across_strip(type, m, false, s);                                               \
        return;
    switch (s->m) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8)
    }
#undef ROWS
}

typedef void strip_fn(struct strip *);
#define STRIP(name, type, across)                                                          \
    static void name(struct strip *s)                                                      \
    {                                                                                      \
        by_rows(type, across, s);                                                          \
    }
#if defined(HAS_HALVES)
STRIP(dot_f16, HW_F16, false)

static strip_fn *const strips[2][HW_BF16 + 1] = { { [HW_F16] = dot_f16 } };
#elif defined(HAS_PAIRS)
STRIP(dot_bf16, HW_BF16, false)

static strip_fn *const strips[2][HW_BF16 + 1] = { { [HW_BF16] = dot_bf16 } };
#else
STRIP(dot_f32, HW_F32, false)
STRIP(dot_f16, HW_F16, false)
STRIP(dot_bf16, HW_BF16, false)
STRIP(across_f32, HW_F32, true)
STRIP(across_f16, HW_F16, true)
STRIP(across_bf16, HW_BF16, true)

static strip_fn *const strips[2][HW_BF16 + 1] = {
    { [HW_F32] = dot_f32, [HW_F16] = dot_f16, [HW_BF16] = dot_bf16 },
    { [HW_F32] = across_f32, [HW_F16] = across_f16, [HW_BF16] = across_bf16 },
};
#endif
#undef STRIP

/* Adds the bias and stores the sums of a strip, from column `col` of c on. */
static void store_strip(const struct matmul_args *a, const struct strip *s, char *c,
                        const char *bias, int64_t col)
{
    for (int y = 0; y < s->m; y++)
        for (int64_t i = 0; i < s->cols; i += LANES) {
            const int64_t n = s->cols - i < LANES ? s->cols - i : LANES;
            vf v = vf_load(s->out[y] + i);
            if (a->bias_type)
                v += vf_load_part_as(a->bias_type, bias, col + i, n);
            vf_store_part_as(a->c_type, c + y * a->c.stride[2], col + i, v, n);
        }
}

/* Rows of a that are not of X_TYPE are first converted for each batch of c: to bf16 if pairs are
 * multiplied, otherwise to f32. Rows are also copied if their elements k map to the same sets of
 * the first-level cache: it cannot hold many of them beside rows of b, which may map to these sets,
 * too. Copies are an odd number of lines apart. */
static bool copies_rows(const struct matmul_args *a)
{
    return a->a_type != X_TYPE || (a->transpose_b && a->m > 2 && a->b_type == a->a_type &&
                                   a->a.stride[2] % SAME_PLACES == 0);
}

static int64_t copied_bytes(const struct matmul_args *a)
{
    return ((a->k * X_BYTES + LINE - 1) / LINE | 1) * LINE;
}

static const char *matrix_of(const char *base, const struct place *p, const int64_t *batch,
                             int64_t repeat0, int64_t repeat1)
{
    return base + p->offset + batch[0] / repeat0 * p->stride[0] +
           batch[1] / repeat1 * p->stride[1];
}

static void copy_rows(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        const int64_t batch[] = { i / a->m / a->batch1, i / a->m % a->batch1 };
        const char *from = matrix_of(plan->pointer[1], &a->a, batch, a->a_repeat0,
                                     a->a_repeat1) +
                           i % a->m * a->a.stride[2];
        char *to = (char *)plan_shared(plan) + i * copied_bytes(a);
        int64_t k = 0;
        for (; k + LANES <= a->k; k += LANES)
            store_x(to + k * X_BYTES, vf_load_as(a->a_type, from, k));
        if (k < a->k)
            store_x(to + k * X_BYTES, vf_load_part_as(a->a_type, from, k, a->k - k));
    }
}

/* Whether rows of a that could be multiplied in one pass are split in halves. If b is f32 in
 * memory, that takes 3 to 25 % less time; if b is in a cache, it takes 1.5 times as long (AMD EPYC
 * Zen 4). */
static bool in_halves(const struct matmul_args *a)
{
    const double row = (double)a->k * sizeof(float);
    return a->b_type == HW_F32 && a->m >= HALVES_FROM && a->m <= HALVES_TO &&
           (double)a->n * row >= UNCACHED && COLS * row <= TWO_STRIPS;
}

/* How often rows of a take a strip. */
static int64_t times_of(const struct matmul_args *a)
{
    const int64_t once = a->b_type == HW_F32 ? DOT_ROWS : ONCE_ROWS;
    if (!a->transpose_b || (a->m <= once && !in_halves(a)))
        return 1;
    return a->m > 2 * DOT_ROWS ? (a->m + DOT_ROWS - 1) / DOT_ROWS : 2;
}

/* A strip that is read several times is half as wide, so that the next one fits in the cache,
 * too. */
static int64_t cols_of(const struct matmul_args *a)
{
    if (a->transpose_b)
        return times_of(a) > 1 ? COLS / 2 : COLS;
    return across_for((int)a->m) * LANES;
}

/* All rows of a, some at a time. */
static void multiply_strip(const struct matmul_args *a, struct strip *s, char *c,
                           const char *bias, int64_t col)
{
    const int64_t rows = (a->m + s->times - 1) / s->times;
    s->time = 0;
    for (int64_t row = 0; row < a->m; row += rows, s->time++) {
        s->m = (int)(a->m - row < rows ? a->m - row : rows);
        strips[!a->transpose_b][a->b_type](s);
        store_strip(a, s, c + row * a->c.stride[2], bias, col);
        s->x += rows * s->x_stride;
    }
}

static void run_gemv(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const int64_t cols = cols_of(a), across = (a->n + cols - 1) / cols;
    struct strip s = { .k = a->k, .b_stride = a->b.stride[2], .times = (int)times_of(a) };
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        const int64_t matrix = i / across, col = i % across * cols;
        const int64_t batch[] = { matrix / a->batch1, matrix % a->batch1 };
        s.b = matrix_of(plan->pointer[2], &a->b, batch, a->b_repeat0, a->b_repeat1) +
              col * (a->transpose_b ? a->b.stride[2] : bytes_of(a->b_type));
        s.cols = a->n - col < cols ? a->n - col : cols;
        if (!copies_rows(a)) {
            s.x = matrix_of(plan->pointer[1], &a->a, batch, a->a_repeat0, a->a_repeat1);
            s.x_stride = a->a.stride[2];
        } else {
            s.x_stride = copied_bytes(a);
            s.x = (const char *)plan_shared(plan) + matrix * a->m * s.x_stride;
        }
        multiply_strip(a, &s, (char *)matrix_of(plan->pointer[0], &a->c, batch, 1, 1),
                       (const char *)plan->pointer[3] + a->bias_offset, col);
    }
}

/* ---- the row of kernels.def ---- */

static int64_t batches_of(const struct hw_tensor *c)
{
    int64_t batches = 1;
    for (int i = 0; i < c->rank - 2; i++)
        batches *= c->extent[i];
    return batches;
}

const char *PLAN(gemv)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const struct hw_matmul *op = args;
    const struct matmul_args *a = &plan->lowered.args.matmul;
    const char *why = plan_lowered(plan, row, args);
    if (why || !plan->groups)
        return why;
    const int64_t batches = batches_of(&op->c), cols = cols_of(a);
    plan->run = run_gemv;
    plan->groups = batches * ((a->n + cols - 1) / cols);
    plan->work /= times_of(a) > 1 ? 6 : 2; /* multiply-adds at the speed of a cache */
    if (copies_rows(a) && a->k > 0) {
        plan->prepare = copy_rows;
        plan->prepare_groups = batches * a->m;
        plan->prepare_grain = 1 + 65536 / a->k;
        plan->shared_bytes = (uint64_t)(batches * a->m * copied_bytes(a));
    }
    return NULL;
}
