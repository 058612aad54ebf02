/* SPDX-License-Identifier: MIT */
/* matmul: one of two kernels, by how many rows there are. */
#include "lowering.h"

void lower_matmul(const struct hw_matmul *op, struct lowered *out)
{
    struct matmul_args *m = &out->args.matmul;

    if (!is_float(&op->b) && !is_block(&op->b))
        refuse(out, "b: " UNKNOWN_TYPE);
    if (is_block(&op->b) && !op->transpose_b)
        refuse(out, "b: block types run along K, stored [N,K] with transpose_b");
    m->transpose_a = op->transpose_a != 0;
    m->transpose_b = op->transpose_b != 0;
    m->c = place_of(&op->c);
    m->a = place_of(&op->a);
    m->b = place_of(&op->b);
    m->bias_offset = offset_of(&op->bias);
    m->batch1 = extent_of(&op->c, 2);
    m->m = extent_of(&op->c, 1);
    m->n = extent_of(&op->c, 0);
    m->k = extent_of(&op->a, m->transpose_a ? 1 : 0);
    m->c_type = op->c.dtype;
    m->a_type = op->a.dtype;
    m->b_type = op->b.dtype;
    m->bias_type = op->bias.dtype;

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
    want_dense(out, &op->c);
}
