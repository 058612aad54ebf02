/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for few rows of a, b stored [n,k]: one group per MATMUL_VEC_COLS columns.
 *
 * Each number of b is read and converted once and used for all rows of a; a comes into group
 * memory as float, MATMUL_VEC_DEPTH along k at a time. LANES work-items share a
 * column, and a work-item keeps PIECE partial sums, so that plain C vectorises along k. */
#define MATMUL_VEC_DEPTH 256
#define MATMUL_VEC_STEP  (GROUP / LANES) /* columns at a time */
#define MATMUL_VEC_KEPT  (MATMUL_VEC_COLS / MATMUL_VEC_STEP)

KERNEL(matmul_vec)(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b,
                   GLOBAL const u8 *bias, ARGS(struct matmul_args) s GRID)
{
    SHARED float ta[MATMUL_VEC_ROWS * MATMUL_VEC_DEPTH], scratch[GROUP];
    float sum[MATMUL_VEC_KEPT][MATMUL_VEC_ROWS][PIECE] = { { { 0.0f } } };
    const int lid = local_id(), lane = lid % LANES, m = (int)s.m;
    const i64 across = (s.n + MATMUL_VEC_COLS - 1) / MATMUL_VEC_COLS;
    const i64 col = group_id() % across * MATMUL_VEC_COLS + lid / LANES;
    struct index at;
    at.i0 = group_id() / across / s.batch1;
    at.i1 = group_id() / across % s.batch1;
    at.i2 = 0;

    a += row_at(s.a, at);
    b += row_at(s.b, at);
    c += row_at(s.c, at);

    for (i64 k = 0; k < s.k; k += MATMUL_VEC_DEPTH) {
        const int depth = s.k - k < MATMUL_VEC_DEPTH ? (int)(s.k - k) : MATMUL_VEC_DEPTH;
        load_tile(ta, MATMUL_VEC_DEPTH, 1, m, MATMUL_VEC_DEPTH, a, s.a.stride[2], s.a_type,
                  k, m, depth, lid);
        BARRIER();
        for (int j = 0; j < MATMUL_VEC_KEPT && col + j * MATMUL_VEC_STEP < s.n; j++) {
            GLOBAL const u8 *row = b + (col + j * MATMUL_VEC_STEP) * s.b.stride[2];
            for (int x = lane * PIECE; x < depth; x += LANES * PIECE) {
                float v[PIECE] = { 0.0f };
                load_piece(v, row, s.b_type, k + x, depth - x < PIECE ? depth - x : PIECE);
                for (int y = 0; y < MATMUL_VEC_ROWS && y < m; y++)
                    for (int i = 0; i < PIECE; i++)
                        sum[j][y][i] += v[i] * ta[y * MATMUL_VEC_DEPTH + x + i];
            }
        }
        BARRIER();
    }
    for (int j = 0; j < MATMUL_VEC_KEPT; j++)
        for (int y = 0; y < MATMUL_VEC_ROWS && y < m; y++) {
            float v = 0.0f;
            for (int i = 0; i < PIECE; i++)
                v += sum[j][y][i];
            v = run_sum(v, scratch, lid, LANES);
            const i64 x = col + j * MATMUL_VEC_STEP;
            if (lane == 0 && x < s.n) {
                if (s.bias_type)
                    v += load_any(bias + s.bias_offset, s.bias_type, x);
                store_any(c + y * s.c.stride[2], s.c_type, x, v);
            }
        }
}
