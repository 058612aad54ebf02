/* SPDX-License-Identifier: MIT */
/* c = a . b + bias: one group per MATMUL_ROWS x MATMUL_COLS of c. */

/* Loads ta[row][k] and tb[k][col] for the next MATMUL_DEPTH of k. `a` and `b` point at the
 * matrices of the batch. */
LOCAL_FUNC void matmul_load(LOCAL float *ta, LOCAL float *tb, GLOBAL const u8 *a,
                            GLOBAL const u8 *b, ARGS(struct matmul_args) s,
                            struct matmul_corner at, i64 k, int lid)
{
    const i64 depth = s.k - k, a_stride = s.a.stride[2], b_stride = s.b.stride[2];
    if (s.transpose_a)
        load_tile(ta, 1, MATMUL_A_PITCH, MATMUL_DEPTH, MATMUL_ROWS, a + k * a_stride,
                  a_stride, s.a_type, at.row, depth, at.rows, lid);
    else
        load_tile(ta, MATMUL_A_PITCH, 1, MATMUL_ROWS, MATMUL_DEPTH, a + at.row * a_stride,
                  a_stride, s.a_type, k, at.rows, depth, lid);
    if (s.transpose_b)
        load_tile(tb, 1, MATMUL_B_PITCH, MATMUL_COLS, MATMUL_DEPTH, b + at.col * b_stride,
                  b_stride, s.b_type, k, at.cols, depth, lid);
    else
        load_tile(tb, MATMUL_B_PITCH, 1, MATMUL_DEPTH, MATMUL_COLS, b + k * b_stride,
                  b_stride, s.b_type, at.col, depth, at.cols, lid);
}

/* Adds the bias to one square and stores it; `c` points at the first row of the tile. */
FUNC void matmul_store(GLOBAL u8 *c, PRIVATE const float *sum, GLOBAL const u8 *bias,
                       ARGS(struct matmul_args) s, struct matmul_corner at, int y0, int x0)
{
    const int left = at.cols - x0 < MATMUL_SQUARE_COLS ? (int)(at.cols - x0)
                                                       : MATMUL_SQUARE_COLS;
    for (int y = 0; y < MATMUL_SQUARE_ROWS && y0 + y < at.rows; y++) {
        float out[MATMUL_SQUARE_COLS]; /* so that sum is only indexed by constants */
        for (int x = 0; x < MATMUL_SQUARE_COLS; x++)
            out[x] = sum[y * MATMUL_SQUARE_COLS + x];
        for (int x = 0; s.bias_type && x < left; x++)
            out[x] += load_any(bias + s.bias_offset, s.bias_type, at.col + x0 + x);
        store_piece(c + (y0 + y) * s.c.stride[2], s.c_type, at.col + x0, out, left);
    }
}

KERNEL(matmul)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED float ta[MATMUL_ROWS * MATMUL_A_PITCH], tb[MATMUL_DEPTH * MATMUL_B_PITCH];
    float sum[MATMUL_KEPT][MATMUL_SQUARE_ROWS * MATMUL_SQUARE_COLS] = { { 0.0f } };
    const int lid = local_id();
    const i64 across = (s.n + MATMUL_COLS - 1) / MATMUL_COLS;
    const i64 down = (s.m + MATMUL_ROWS - 1) / MATMUL_ROWS;
    const struct index tile = index_of(group_id(), down, across);
    struct index batch;
    batch.i0 = tile.i0 / s.batch1;
    batch.i1 = tile.i0 % s.batch1;
    batch.i2 = 0;
    struct matmul_corner at;
    at.col = tile.i2 * MATMUL_COLS;
    at.row = tile.i1 * MATMUL_ROWS;
    at.rows = s.m - at.row < MATMUL_ROWS ? s.m - at.row : MATMUL_ROWS;
    at.cols = s.n - at.col < MATMUL_COLS ? s.n - at.col : MATMUL_COLS;

    a += matmul_at(s.a, batch, s.a_repeat0, s.a_repeat1);
    b += matmul_at(s.b, batch, s.b_repeat0, s.b_repeat1);
    c += row_at(s.c, batch) + at.row * s.c.stride[2];

    for (i64 k = 0; k < s.k; k += MATMUL_DEPTH) {
        matmul_load(ta, tb, a, b, s, at, k, lid);
        BARRIER();
        for (int n = 0; n < MATMUL_KEPT; n++) {
            const int y = (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS;
            const int x = (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS;
            if (y < at.rows && x < at.cols)
                matmul_square(sum[n], ta + y * MATMUL_A_PITCH, tb + x);
        }
        BARRIER();
    }
    for (int n = 0; n < MATMUL_KEPT; n++)
        matmul_store(c, sum[n], bias, s, at,
                     (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS,
                     (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS);
}
