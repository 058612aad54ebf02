/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for few rows of a, b stored [n,k]: one group per MATMUL_VEC_COLS
 * columns.
 *
 * Each number of b is read and converted once and used for all rows of a. a is loaded into
 * group memory as float, MATMUL_VEC_DEPTH along k at a time. LANES work-items share a
 * column. */
KERNEL(matmul_vec)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED float ta[MATMUL_VEC_ROWS * MATMUL_VEC_DEPTH], scratch[GROUP];
    vec sum[MATMUL_VEC_KEPT][MATMUL_VEC_ROWS];
    const int lid = local_id(), lane = lid % LANES, m = (int)s.m;
    const i64 across = (s.n + MATMUL_VEC_COLS - 1) / MATMUL_VEC_COLS;
    struct index at = index_of(group_id(), s.batch1, across);
    const i64 col = at.i2 * MATMUL_VEC_COLS + lid / LANES;
    at.i2 = 0;

    a += matmul_at(s.a, at, s.a_repeat0, s.a_repeat1);
    b += matmul_at(s.b, at, s.b_repeat0, s.b_repeat1);
    c += row_at(s.c, at);

    for (int j = 0; j < MATMUL_VEC_KEPT; j++)
        for (int y = 0; y < MATMUL_VEC_ROWS && y < m; y++)
            sum[j][y] = vec_zero;
    for (i64 k = 0; k < s.k; k += MATMUL_VEC_DEPTH) {
        const int depth = s.k - k < MATMUL_VEC_DEPTH ? (int)(s.k - k) : MATMUL_VEC_DEPTH;
        load_tile(ta, MATMUL_VEC_DEPTH, 1, m, MATMUL_VEC_DEPTH, a, s.a.stride[2], s.a_type,
                  k, m, depth, lid);
        BARRIER();
        for (int j = 0; j < MATMUL_VEC_KEPT; j++) {
            const i64 x = col + j * MATMUL_VEC_STEP;
            float tb[MATMUL_VEC_MINE];
            if (x >= s.n)
                continue;
            matmul_vec_load(tb, b + x * s.b.stride[2], s.b_type, k, depth, lane);
            for (int y = 0; y < MATMUL_VEC_ROWS && y < m; y++)
                sum[j][y] += matmul_vec_dot(tb, ta + y * MATMUL_VEC_DEPTH, lane);
        }
        BARRIER();
    }
    for (int j = 0; j < MATMUL_VEC_KEPT; j++)
        for (int y = 0; y < MATMUL_VEC_ROWS && y < m; y++) {
            const i64 x = col + j * MATMUL_VEC_STEP;
            float v = run_sum(vec_sum(sum[j][y]), scratch, lid, LANES);
            if (lane == 0 && x < s.n) {
                if (s.bias_type)
                    v += load_any(bias + s.bias_offset, s.bias_type, x);
                store_any(c + y * s.c.stride[2], s.c_type, x, v);
            }
        }
}
