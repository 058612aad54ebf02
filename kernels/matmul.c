/* SPDX-License-Identifier: MIT */
/* c = a . b + bias: one group per MATMUL_ROWS x MATMUL_COLS of c.
 *
 * Tiles of a and b come into group memory as float, MATMUL_DEPTH along k at a time: one
 * block of a block type. A work-item keeps whole squares of c, so that each number it
 * reads from a tile is used several times. */
#define MATMUL_DEPTH       BLOCK
#define MATMUL_SQUARE_ROWS 4
#if GROUP == 1
#define MATMUL_SQUARE_COLS (2 * VEC)
#define MATMUL_PAD         0
#else
#define MATMUL_SQUARE_COLS 4
#define MATMUL_PAD         1 /* or a column of a tile would lie in one bank */
#endif
#define MATMUL_SQUARE_VECS (MATMUL_SQUARE_COLS / VEC)
#define MATMUL_A_PITCH     (MATMUL_DEPTH + MATMUL_PAD)
#define MATMUL_B_PITCH     (MATMUL_COLS + MATMUL_PAD)
#define MATMUL_ACROSS      (MATMUL_COLS / MATMUL_SQUARE_COLS)
#define MATMUL_SQUARES     (MATMUL_ROWS / MATMUL_SQUARE_ROWS * MATMUL_ACROSS)
#define MATMUL_KEPT        ((MATMUL_SQUARES + GROUP - 1) / GROUP)

/* sum += ta . tb for one square. */
FUNC void matmul_square(PRIVATE float *sum, LOCAL const float *ta, LOCAL const float *tb)
{
    vec s[MATMUL_SQUARE_ROWS][MATMUL_SQUARE_VECS];
    for (int y = 0; y < MATMUL_SQUARE_ROWS; y++)
        for (int x = 0; x < MATMUL_SQUARE_VECS; x++)
            s[y][x] = load_vec(sum + y * MATMUL_SQUARE_COLS + x * VEC);
    for (int k = 0; k < MATMUL_DEPTH; k++)
        for (int y = 0; y < MATMUL_SQUARE_ROWS; y++)
            for (int x = 0; x < MATMUL_SQUARE_VECS; x++)
                s[y][x] += ta[y * MATMUL_A_PITCH + k] *
                           load_vec(tb + k * MATMUL_B_PITCH + x * VEC);
    for (int y = 0; y < MATMUL_SQUARE_ROWS; y++)
        for (int x = 0; x < MATMUL_SQUARE_VECS; x++)
            store_vec(sum + y * MATMUL_SQUARE_COLS + x * VEC, s[y][x]);
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
    const i64 col = group_id() % across * MATMUL_COLS;
    const i64 row = group_id() / across % down * MATMUL_ROWS;
    const i64 rows = s.m - row < MATMUL_ROWS ? s.m - row : MATMUL_ROWS;
    const i64 cols = s.n - col < MATMUL_COLS ? s.n - col : MATMUL_COLS;
    struct index at;
    at.i0 = group_id() / across / down / s.batch1;
    at.i1 = group_id() / across / down % s.batch1;
    at.i2 = 0;

    a += row_at(s.a, at);
    b += row_at(s.b, at);
    c += row_at(s.c, at) + row * s.c.stride[2];

    for (i64 k = 0; k < s.k; k += MATMUL_DEPTH) {
        const i64 depth = s.k - k;
        if (s.transpose_a)
            load_tile(ta, 1, MATMUL_A_PITCH, MATMUL_DEPTH, MATMUL_ROWS,
                      a + k * s.a.stride[2], s.a.stride[2], s.a_type, row, depth, rows,
                      lid);
        else
            load_tile(ta, MATMUL_A_PITCH, 1, MATMUL_ROWS, MATMUL_DEPTH,
                      a + row * s.a.stride[2], s.a.stride[2], s.a_type, k, rows, depth,
                      lid);
        if (s.transpose_b)
            load_tile(tb, 1, MATMUL_B_PITCH, MATMUL_COLS, MATMUL_DEPTH,
                      b + col * s.b.stride[2], s.b.stride[2], s.b_type, k, cols, depth,
                      lid);
        else
            load_tile(tb, MATMUL_B_PITCH, 1, MATMUL_DEPTH, MATMUL_COLS,
                      b + k * s.b.stride[2], s.b.stride[2], s.b_type, col, depth, cols,
                      lid);
        BARRIER();
        for (int n = 0; n < MATMUL_KEPT; n++) {
            const int y = (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS;
            const int x = (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS;
            if (y < rows && x < cols)
                matmul_square(sum[n], ta + y * MATMUL_A_PITCH, tb + x);
        }
        BARRIER();
    }
    for (int n = 0; n < MATMUL_KEPT; n++) {
        const int y0 = (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS;
        const int x0 = (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS;
        const int left = cols - x0 < MATMUL_SQUARE_COLS ? (int)(cols - x0)
                                                        : MATMUL_SQUARE_COLS;
        for (int y = 0; y < MATMUL_SQUARE_ROWS && y0 + y < rows; y++) {
            float out[MATMUL_SQUARE_COLS]; /* so that sum is only indexed by constants */
            for (int x = 0; x < MATMUL_SQUARE_COLS; x++)
                out[x] = sum[n][y * MATMUL_SQUARE_COLS + x];
            for (int x = 0; s.bias_type && x < left; x++)
                out[x] += load_any(bias + s.bias_offset, s.bias_type, col + x0 + x);
            store_piece(c + (y0 + y) * s.c.stride[2], s.c_type, col + x0, out, left);
        }
    }
}
