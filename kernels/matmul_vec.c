/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for few rows of a, b stored [n,k]: one group per MATMUL_VEC_COLS
 * columns.
 *
 * Each number of b is read and converted once and used for all rows of a. a is loaded into
 * group memory as float, MATMUL_VEC_DEPTH along k at a time. LANES work-items share a
 * column. */
#define MATMUL_VEC_DEPTH 256
#define MATMUL_VEC_MINE  (MATMUL_VEC_DEPTH / LANES) /* per work-item */
#define MATMUL_VEC_STEP  (GROUP / LANES)            /* columns at a time */
#define MATMUL_VEC_KEPT  (MATMUL_VEC_COLS / MATMUL_VEC_STEP)
#define MATMUL_VEC_SUMS  4 /* independent ones: an addition takes several cycles */

/* The position along the depth of a work-item's e-th number. */
FUNC int matmul_vec_at(int e, int lane)
{
    return (e / PIECE * LANES + lane) * PIECE + e % PIECE;
}

/* Loads the work-item's numbers of a row of b from k on, and zeros beyond the depth. */
FUNC void matmul_vec_load(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 k,
                          int depth, int lane)
{
    if (depth == MATMUL_VEC_DEPTH) {
        load_pieces(to, row, type, k + lane * PIECE, MATMUL_VEC_MINE / PIECE,
                    LANES * PIECE);
        return;
    }
    for (int e = 0; e < MATMUL_VEC_MINE; e += PIECE) {
        const int left = depth - matmul_vec_at(e, lane);
        for (int i = 0; i < PIECE && left < PIECE; i++)
            to[e + i] = 0.0f;
        if (left > 0)
            load_piece(to + e, row, type, k + matmul_vec_at(e, lane),
                       left < PIECE ? left : PIECE);
    }
}

/* The work-item's part of the dot product of two rows. */
FUNC vec matmul_vec_dot(PRIVATE const float *b, LOCAL const float *a, int lane)
{
    vec sum[MATMUL_VEC_SUMS];
    for (int i = 0; i < MATMUL_VEC_SUMS; i++)
        sum[i] = load_vec(b + i * VEC) * load_vec(a + matmul_vec_at(i * VEC, lane));
    for (int e = MATMUL_VEC_SUMS * VEC; e < MATMUL_VEC_MINE; e += MATMUL_VEC_SUMS * VEC)
        for (int i = 0; i < MATMUL_VEC_SUMS; i++)
            sum[i] += load_vec(b + e + i * VEC) *
                      load_vec(a + matmul_vec_at(e + i * VEC, lane));
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

KERNEL(matmul_vec)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED float ta[MATMUL_VEC_ROWS * MATMUL_VEC_DEPTH], scratch[GROUP];
    vec sum[MATMUL_VEC_KEPT][MATMUL_VEC_ROWS];
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
