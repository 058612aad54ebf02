/* SPDX-License-Identifier: MIT */
/* lines.h - rows of a and c of matmul and matmul_id, for products with weights of block types: rows
 * of a as floats or rounded to 8 bits, and storing sums as results. */
#ifndef CPU_LINES_H
#define CPU_LINES_H

#include "blocktypes.h"
#include "rounded.h"

/* The common facts about the rows of both ops. `a_rows`: the rows that are prepared. */
struct lines {
    int64_t a_rows, c_rows, n, k;
    int a_type, b_type;
};

static inline bool has_experts(const struct plan *plan)
{
    return plan->row->op == HW_OP_MATMUL_ID;
}

/* The rows of a per token of matmul_id: 1 if its experts share a row. */
static inline int64_t rows_of_token(const struct matmul_id_args *m)
{
    return m->a.stride[2] ? m->used : 1;
}

static inline struct lines lines_of_experts(const struct matmul_id_args *m)
{
    return (struct lines){ .a_rows = m->tokens * rows_of_token(m),
                           .c_rows = m->tokens * m->used,
                           .n = m->n,
                           .k = m->k,
                           .a_type = m->a_type,
                           .b_type = m->b_type };
}

/* All rows of all matrices of matmul. */
static inline int64_t rows_of(const struct plan *plan)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct hw_tensor *c = &((const struct hw_matmul *)plan->op)->c;
    return (c->rank == 4 ? c->extent[0] : 1) * m->batch1 * m->m;
}

/* If b is a single matrix, all rows of a are multiplied by it together. */
struct matrices {
    int64_t count, rows; /* of a and c, for each */
};

static inline struct matrices matrices_of(const struct plan *plan)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const struct hw_tensor *b = &((const struct hw_matmul *)plan->op)->b;
    int64_t several = 1;
    for (int i = 0; i + 2 < b->rank; i++)
        several *= b->extent[i];
    return several == 1 ? (struct matrices){ 1, rows_of(plan) }
                        : (struct matrices){ rows_of(plan) / m->m, m->m };
}

/* The matrix that is multiplied for matrix number `matrix` of c. */
static inline char *matrix_of_b(const struct plan *plan, int64_t matrix)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    const int64_t i0 = matrix / m->batch1 / m->b_repeat0,
                  i1 = matrix % m->batch1 / m->b_repeat1;
    return (char *)plan->pointer[2] + m->b.offset + i0 * m->b.stride[0] +
           i1 * m->b.stride[1];
}

static inline struct lines lines_of(const struct plan *plan)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    if (has_experts(plan))
        return lines_of_experts(&plan->lowered.args.matmul_id);
    const int64_t rows = rows_of(plan);
    return (struct lines){ .a_rows = rows,
                           .c_rows = rows,
                           .n = m->n,
                           .k = m->k,
                           .a_type = m->a_type,
                           .b_type = m->b_type };
}

/* The address of row r of a: r counts all rows of all matrices. */
struct line {
    char *at;
    int64_t step; /* bytes from element to element */
};

static inline struct line line_of_experts(const struct plan *plan, int64_t r)
{
    const struct matmul_id_args *m = &plan->lowered.args.matmul_id;
    const int64_t some = rows_of_token(m);
    return (struct line){ (char *)plan->pointer[1] + m->a.offset +
                              r / some * m->a.stride[1] + r % some * m->a.stride[2],
                          hw_dtype_bytes(m->a_type) };
}

static inline struct line line_of_a(const struct plan *plan, int64_t r)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    if (has_experts(plan))
        return line_of_experts(plan, r);
    const int64_t i2 = r % m->m, batch = r / m->m;
    const int64_t i0 = batch / m->batch1 / m->a_repeat0,
                  i1 = batch % m->batch1 / m->a_repeat1;
    char *matrix = (char *)plan->pointer[1] + m->a.offset + i0 * m->a.stride[0] +
                   i1 * m->a.stride[1];
    const int64_t bytes = hw_dtype_bytes(m->a_type);
    return m->transpose_a ? (struct line){ matrix + i2 * bytes, m->a.stride[2] }
                          : (struct line){ matrix + i2 * m->a.stride[2], bytes };
}

INLINE void some_floats(int type, float *to, const struct line *x, int64_t k)
{
    const char *at = x->at + k * x->step;
    if (x->step == hw_dtype_bytes(type))
        for (int i = 0; i < PACKED_RUN; i += LANES)
            vf_store(to + i, vf_load_as(type, at, i));
    else
        for (int i = 0; i < PACKED_RUN; i++, at += x->step) {
            vf_store_part(to + i, vf_load_part_as(type, at, 0, 1), 1);
        }
}

/* 32 elements of a row of `type` as floats, from the k-th on. */
static void run_floats(int type, float *to, const struct line *x, int64_t k)
{
    if (type == HW_F32)
        some_floats(HW_F32, to, x, k);
    else if (type == HW_F16)
        some_floats(HW_F16, to, x, k);
    else
        some_floats(HW_BF16, to, x, k);
}

INLINE vf bias_of(int type, const char *bias, int64_t col, int64_t n)
{
    return type == HW_F32    ? vf_load_part_as(HW_F32, bias, col, n)
           : type == HW_F16  ? vf_load_part_as(HW_F16, bias, col, n)
           : type == HW_BF16 ? vf_load_part_as(HW_BF16, bias, col, n)
                             : vf_set(0);
}

/* A row of c, and its bias. */
struct result {
    char *c;
    const char *bias;
    int64_t n;
    int c_type, bias_type;
};

static inline struct result result_of(const struct plan *plan, int64_t r)
{
    const struct matmul_args *m = &plan->lowered.args.matmul;
    return (struct result){ .c = row_of(plan->pointer[0], &m->c, m->batch1, m->m, r),
                            .bias = (const char *)plan->pointer[3] + m->bias_offset,
                            .n = m->n,
                            .c_type = m->c_type,
                            .bias_type = m->bias_type };
}

/* Adds the bias to `count` sums, of columns from `col` on, and stores those that exist. */
static void put_sums(const struct result *to, int64_t col, int64_t count, const float *sums)
{
    for (int64_t i = 0; i < count && col + i < to->n; i += LANES) {
        const int64_t left = to->n - col - i, n = left < LANES ? left : LANES;
        vf v = vf_load(sums + i);
        if (to->bias_type)
            v += bias_of(to->bias_type, to->bias, col + i, n);
        if (to->c_type == HW_F32)
            vf_store_part_as(HW_F32, to->c, col + i, v, n);
        else if (to->c_type == HW_F16)
            vf_store_part_as(HW_F16, to->c, col + i, v, n);
        else
            vf_store_part_as(HW_BF16, to->c, col + i, v, n);
    }
}

/* ---- rows of a as floats, in the shared workspace ---- */

/* The length of a row of floats, padded with zeros: some products read beyond the end of a row. */
static inline int64_t float_pitch(const struct plan *plan)
{
    enum { WHOLE = 256 };
    return (lines_of(plan).k + WHOLE - 1) / WHOLE * WHOLE;
}

static inline uint64_t float_row_bytes(const struct plan *plan)
{
    return (uint64_t)float_pitch(plan) * sizeof(float);
}

/* Row r of a as floats. */
static inline void floats_of_row(const struct plan *plan, int64_t r, float *x)
{
    const struct lines l = lines_of(plan);
    const struct line a = line_of_a(plan, r);
    for (int64_t k = 0; k < l.k; k += PACKED_RUN)
        run_floats(l.a_type, x + k, &a, k);
    memset(x + l.k, 0, (size_t)(float_pitch(plan) - l.k) * sizeof *x);
}

static inline float *row_of_x(const struct plan *plan, int64_t r)
{
    return (float *)plan_shared(plan) + r * float_pitch(plan);
}

static inline void prepare_floats(const struct plan *plan, int64_t first, int64_t end,
                                  uint32_t thread)
{
    (void)thread;
    for (int64_t r = first; r < end; r++)
        floats_of_row(plan, r, row_of_x(plan, r));
}

/* Sets the function that prepares `bytes` for each row of a. */
static inline void plan_prepare(struct plan *plan, plan_run_fn *prepare, uint64_t bytes)
{
    const struct lines l = lines_of(plan);
    plan->prepare = prepare;
    plan->prepare_groups = l.a_rows;
    plan->prepare_grain = 1 + 32768 / (l.k + 1);
    plan->shared_bytes = (uint64_t)l.a_rows * bytes;
}

#endif
