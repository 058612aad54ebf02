/* SPDX-License-Identifier: MIT */
/* prelude/product.h - what the kernels that compute products share: tiles and squares of
 * matrices, and dot products of rows. Follows prelude/group.h.
 *
 * A tile of each matrix is in group memory as float, MATMUL_DEPTH along k at a time, which is
 * one run of a block type. A work-item computes whole squares of the result, so each number
 * that it reads from a tile is used several times. */
#ifndef PRELUDE_PRODUCT_H
#define PRELUDE_PRODUCT_H

/* ---- tiles and squares ---- */

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
LOCAL_FUNC void matmul_square(PRIVATE float *sum, LOCAL const float *ta,
                              LOCAL const float *tb)
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

/* The tile of c that a group computes: first row and column, and how many of both. */
struct matmul_corner {
    i64 row, col, rows, cols;
};

/* The first byte of an operand's matrix for a batch of c. */
FUNC i64 matmul_at(struct place p, struct index batch, i64 repeat0, i64 repeat1)
{
    return p.offset + batch.i0 / repeat0 * p.stride[0] + batch.i1 / repeat1 * p.stride[1];
}

/* ---- dot products ---- */

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
LOCAL_FUNC vec matmul_vec_dot(PRIVATE const float *b, LOCAL const float *a, int lane)
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

#endif
