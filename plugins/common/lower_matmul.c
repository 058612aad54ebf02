/* SPDX-License-Identifier: MIT */
/* matmul, matmul_id: each has two kernels; the number of rows selects one. */
#include "lowering.h"

/* How many neighbouring batches of c share one of `t`. */
static int64_t repeat_of(const struct hw_tensor *t, const struct hw_tensor *c, int axis)
{
    const int64_t own = extent_of(t, axis), all = extent_of(c, axis);
    return own > 0 && own != all ? all / own : 1; /* usually without the slow division */
}

void lower_matmul(const struct hw_matmul *op, struct lowered *out)
{
    struct matmul_args *m = &out->args.matmul;

    if (!is_float(&op->b) && !is_block(&op->b))
        refuse(out, "b: " UNKNOWN_TYPE);
    if (is_block(&op->b) && !op->transpose_b)
        refuse(out, "b: block types run along K, stored [N,K] with transpose_b");
    *m = (struct matmul_args){
        .c = place_of(&op->c),
        .a = place_of(&op->a),
        .b = place_of(&op->b),
        .bias_offset = offset_of(&op->bias),
        .batch1 = extent_of(&op->c, 2),
        .m = extent_of(&op->c, 1),
        .n = extent_of(&op->c, 0),
        .k = extent_of(&op->a, op->transpose_a ? 1 : 0),
        .a_repeat0 = repeat_of(&op->a, &op->c, 3),
        .a_repeat1 = repeat_of(&op->a, &op->c, 2),
        .b_repeat0 = repeat_of(&op->b, &op->c, 3),
        .b_repeat1 = repeat_of(&op->b, &op->c, 2),
        .c_type = op->c.dtype,
        .a_type = op->a.dtype,
        .b_type = op->b.dtype,
        .bias_type = op->bias.dtype,
        .transpose_a = op->transpose_a != 0,
        .transpose_b = op->transpose_b != 0,
    };
    const bool few = m->m <= MATMUL_VEC_ROWS && m->transpose_b && !m->transpose_a;
    const double work = (double)extent_of(&op->c, 3) * (double)m->batch1 * (double)m->m *
                        (double)m->n * (double)(m->k + 1);
    int64_t batches;
    if (__builtin_mul_overflow(extent_of(&op->c, 3), m->batch1, &batches)) {
        refuse(out, TOO_MANY_GROUPS);
    } else if (few) {
        out->kernel = PORTABLE_matmul_vec;
        set_groups(out, batches, 1, pieces(m->n, MATMUL_VEC_COLS), work);
    } else {
        set_groups(out, batches, pieces(m->m, MATMUL_ROWS), pieces(m->n, MATMUL_COLS),
                   work);
    }
    want_dense(out, &op->a);
    want_dense(out, &op->b);
    want_dense(out, &op->bias);
    want_dense(out, &op->c);
}

void lower_matmul_id(const struct hw_matmul_id *op, struct lowered *out)
{
    struct matmul_id_args *m = &out->args.matmul_id;

    if (!is_float(&op->b) && !is_block(&op->b))
        refuse(out, "b: " UNKNOWN_TYPE);
    *m = (struct matmul_id_args){
        .c = place_of(&op->c),
        .a = place_of(&op->a),
        .b = place_of(&op->b),
        .ids_offset = offset_of(&op->ids),
        .ids_stride = stride_of(&op->ids, 1),
        .bias_offset = offset_of(&op->bias),
        .bias_stride = present(&op->bias) ? stride_of(&op->bias, 1) : 0,
        .tokens = extent_of(&op->c, 2),
        .used = extent_of(&op->c, 1),
        .experts = extent_of(&op->b, 2),
        .n = extent_of(&op->c, 0),
        .k = extent_of(&op->a, 0),
        .c_type = op->c.dtype,
        .a_type = op->a.dtype,
        .b_type = op->b.dtype,
        .bias_type = op->bias.dtype,
    };
    int64_t rows;
    if (__builtin_mul_overflow(m->tokens, m->used, &rows) || rows > INT32_MAX) {
        refuse(out, TOO_MANY_GROUPS);
        return;
    }
    const double work = (double)rows * (double)m->n * (double)(m->k + 1);
    /* A tile with few rows costs as much as that many separate products for each row. */
    if (rows / MATMUL_VEC_ROWS <= m->experts) {
        out->kernel = PORTABLE_matmul_id_vec;
        set_groups(out, rows, 1, pieces(m->n, MATMUL_VEC_COLS), work);
    } else {
        set_groups(out, m->experts + 1, 1, pieces(m->n, MATMUL_COLS), work);
    }
    want_dense(out, &op->a);
    want_dense(out, &op->b);
    want_dense(out, &op->ids);
    want_dense(out, &op->bias);
    want_dense(out, &op->c);
}
