/* SPDX-License-Identifier: MIT */
/* copy, get_rows and set_rows as kernels/ defines them, but without block types: floats to floats,
 * unchanged bytes, and transposed elements. */
#include "moves.h"

DECLARE_PLAN(copy);
DECLARE_PLAN(get_rows);
DECLARE_PLAN(set_rows);

/* ---- from floats to floats ---- */

INLINE void convert(int to_type, int from_type, char *to, const char *from, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store_as(to_type, to, i, vf_load_as(from_type, from, i));
    if (i < n)
        vf_store_part_as(to_type, to, i, vf_load_part_as(from_type, from, i, n - i), n - i);
}

#define CONVERT(TO, to_name, FROM, from_name)                                              \
    static void from_##from_name##_to_##to_name(char *to, const char *from, int64_t n)     \
    {                                                                                      \
        convert(HW_##TO, HW_##FROM, to, from, n);                                          \
    }
CONVERT(F32, f32, F16, f16)
CONVERT(F32, f32, BF16, bf16)
CONVERT(F16, f16, F32, f32)
CONVERT(F16, f16, BF16, bf16)
CONVERT(BF16, bf16, F32, f32)
CONVERT(BF16, bf16, F16, f16)

static void same_32(char *to, const char *from, int64_t n)
{
    memcpy(to, from, (size_t)n * 4);
}

static void same_16(char *to, const char *from, int64_t n)
{
    memcpy(to, from, (size_t)n * 2);
}

/* By the type of the output, then by the type of the input; HW_F32 is the first. */
static convert_fn *const converts[3][3] = {
    { same_32, from_f16_to_f32, from_bf16_to_f32 },
    { from_f32_to_f16, same_16, from_bf16_to_f16 },
    { from_f32_to_bf16, from_f16_to_bf16, same_16 },
};
_Static_assert(HW_F16 == HW_F32 + 1 && HW_BF16 == HW_F32 + 2, "floats are neighbours");

static convert_fn *convert_fn_of(int to_type, int from_type)
{
    return converts[to_type - HW_F32][from_type - HW_F32];
}

static bool is_float(int type)
{
    return type == HW_F32 || type == HW_F16 || type == HW_BF16;
}

static void run_convert(const struct plan *plan, int64_t group, int64_t end,
                        uint32_t thread)
{
    const struct copy_args *a = &plan->lowered.args.copy;
    (void)thread;
    copy_by(convert_fn_of(a->dst_type, a->src_type), plan, group, end);
}

/* ---- unchanged bytes ---- */

/* The bytes of an element that is copied unchanged; 0 if it is not. */
static int64_t bytes_of_bits(int type)
{
    return type == STORAGE_I8    ? 1
           : type == STORAGE_I16 ? 2
           : type == STORAGE_I32 ? 4
           : type == STORAGE_I64 ? 8
                                 : 0;
}

static void run_bytes(const struct plan *plan, int64_t group, int64_t end, uint32_t thread)
{
    const struct copy_args *a = &plan->lowered.args.copy;
    const int64_t bytes = bytes_of_bits(a->dst_type);
    (void)thread;
    while (group < end) {
        const struct stretch s = next_stretch(&group, end, a->cols);
        memmove(row_of(plan->pointer[0], &a->dst, a->n1, a->n2, s.row) + s.first * bytes,
                row_of(plan->pointer[1], &a->src, a->n1, a->n2, s.row) + s.first * bytes,
                (size_t)(s.count * bytes));
    }
}

/* ---- transposed elements ---- */

/* A matrix whose elements are neighbours along p in the output and along q in the input. Elements
 * move in squares, through a temporary copy, so that each line of memory is read and written whole:
 * the lines of a column often share too few sets of a cache. */
enum { SQUARE = 32, LINE = 64 };

struct matrix {
    char *dst;
    const char *src;
    int64_t p, q;               /* extents */
    int64_t dst_step, src_step; /* bytes along q in the output, along p in the input */
};

#define MOVE_SQUARE(type)                                                                  \
    static void move_##type(const struct matrix *m)                                        \
    {                                                                                      \
        type##_t square[SQUARE][SQUARE];                                                   \
        for (int64_t i = 0; i < m->p; i++) {                                               \
            const type##_t *from = (const void *)(m->src + i * m->src_step);               \
            for (int64_t j = SQUARE; j < 2 * SQUARE; j += LINE / (int64_t)sizeof *from)    \
                ASK_FOR(from, j *(int64_t)sizeof *from, 3); /* the next square */          \
            for (int64_t j = 0; j < m->q; j++)                                             \
                square[j][i] = from[j];                                                    \
        }                                                                                  \
        for (int64_t j = 0; j < m->q; j++)                                                 \
            memcpy(m->dst + j * m->dst_step, square[j],                                    \
                   (size_t)m->p * sizeof square[j][0]);                                    \
    }
MOVE_SQUARE(uint8)
MOVE_SQUARE(uint16)
MOVE_SQUARE(uint32)
MOVE_SQUARE(uint64)

static void move_square(const struct matrix *m, int64_t bytes)
{
    if (bytes == 1)
        move_uint8(m);
    else if (bytes == 2)
        move_uint16(m);
    else if (bytes == 4)
        move_uint32(m);
    else
        move_uint64(m);
}

/* Whether elements are neighbours along the rows of the output, and from row to row in the input;
 * otherwise it is the reverse. */
static bool is_gather(const struct copy_args *a)
{
    return a->dst_step == bytes_of_bits(a->dst_type);
}

/* The whole matrix that contains row 0 of the rows numbered (i0, i1). */
static struct matrix matrix_of(const struct copy_args *a)
{
    return is_gather(a) ? (struct matrix){ .p = a->cols,
                                           .q = a->n2,
                                           .dst_step = a->dst.stride[2],
                                           .src_step = a->src_step }
                        : (struct matrix){ .p = a->n2,
                                           .q = a->cols,
                                           .dst_step = a->dst_step,
                                           .src_step = a->src.stride[2] };
}

static int64_t squares(int64_t n)
{
    return (n + SQUARE - 1) / SQUARE;
}

static int64_t within(int64_t n)
{
    return n < SQUARE ? n : SQUARE;
}

/* A group is a square. */
static void run_transpose(const struct plan *plan, int64_t first, int64_t end,
                          uint32_t thread)
{
    const struct copy_args *a = &plan->lowered.args.copy;
    const struct matrix whole = matrix_of(a);
    const int64_t bytes = bytes_of_bits(a->dst_type);
    const int64_t down = squares(whole.p), across = squares(whole.q);
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        const int64_t q = i % across * SQUARE, p = i / across % down * SQUARE;
        const int64_t row = i / across / down * a->n2;
        struct matrix m = whole;
        m.dst = row_of(plan->pointer[0], &a->dst, a->n1, a->n2, row) + p * bytes +
                q * whole.dst_step;
        m.src = row_of(plan->pointer[1], &a->src, a->n1, a->n2, row) + q * bytes +
                p * whole.src_step;
        m.p = within(whole.p - p);
        m.q = within(whole.q - q);
        move_square(&m, bytes);
    }
}

/* Whether there is a matrix to transpose whose columns share few sets of a cache: with other
 * distances between rows, the portable kernel is as fast. */
static bool is_transposed(const struct copy_args *a, int64_t bytes)
{
    enum { FEW = 64, CLOSE = 1024 };
    const bool gathers = a->dst_step == bytes && a->src.stride[2] == bytes;
    const bool scatters = a->src_step == bytes && a->dst.stride[2] == bytes;
    if (gathers == scatters || a->cols < FEW || a->n2 < FEW)
        return false;
    const struct matrix m = matrix_of(a);
    return m.src_step % CLOSE == 0 || m.dst_step % CLOSE == 0;
}

/* ---- copy ---- */

static const char *plan_bits(struct plan *plan, int64_t bytes)
{
    const struct copy_args *a = &plan->lowered.args.copy;
    if (a->dst_step == bytes && a->src_step == bytes) {
        plan->run = run_bytes;
        return NULL;
    }
    if (!is_transposed(a, bytes))
        return "elements are neither contiguous nor transposed, or too few";
    const struct matrix m = matrix_of(a);
    const int64_t spans = (a->cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN;
    plan->groups = plan->groups / spans / a->n2 * squares(m.p) * squares(m.q);
    plan->run = run_transpose;
    return NULL;
}

const char *PLAN(copy)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    const char *why = plan_lowered(plan, row, args);
    const struct copy_args *a = &plan->lowered.args.copy;
    if (why)
        return why;
    if (bytes_of_bits(a->src_type))
        return plan_bits(plan, bytes_of_bits(a->src_type));
    if (!is_float(a->dst_type) || !is_float(a->src_type))
        return "block types";
    plan->run = run_convert;
    return a->dst_step == hw_dtype_bytes(a->dst_type) &&
                   a->src_step == hw_dtype_bytes(a->src_type)
               ? NULL
               : "rows of floats are not contiguous";
}

/* ---- get_rows and set_rows ---- */

static void run_get_rows(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    const struct rows_args *a = &plan->lowered.args.get_rows;
    (void)thread;
    get_rows_by(convert_fn_of(a->to_type, a->from_type), plan, first, end);
}

const char *PLAN(get_rows)(struct plan *plan, const struct kernel_row *row,
                           const void *args)
{
    plan->run = run_get_rows;
    return plan_lowered(plan, row, args);
}

static void run_set_rows(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    const struct rows_args *a = &plan->lowered.args.set_rows;
    (void)thread;
    set_rows_by(convert_fn_of(a->to_type, a->from_type), plan, first, end);
}

const char *PLAN(set_rows)(struct plan *plan, const struct kernel_row *row,
                           const void *args)
{
    plan->run = run_set_rows;
    return plan_lowered(plan, row, args);
}
