/* SPDX-License-Identifier: MIT */
/* c = a . b + bias for floats and blocks of b: one group per TILE_ROWS x TILE_COLS of c.
 *
 * TILE_DEPTH along k of both tiles are in group memory as float, k outermost, so that a work-item
 * reads its rows and columns as vectors. It has MINE_ROWS x MINE_COLS sums: groups of 4 rows and
 * of 4 columns, dealt out in turns, so that neighbours read neighbours. What the next step needs is
 * read from global memory while this one computes, and there are two tiles of each matrix, so that
 * one barrier per step suffices.
 *
 * The plan defines TILE_ROWS, TILE_COLS, TILE_DEPTH, MINE_ROWS, MINE_COLS, the types A_TYPE and B_TYPE,
 * TRANSPOSE_A and TRANSPOSE_B; GROUP is TILE_ROWS * TILE_COLS / (MINE_ROWS * MINE_COLS). It takes care
 * that a vector of 4 is aligned, and is inside its row as a whole or not at all. */
#define ACROSS  (TILE_COLS / MINE_COLS) /* work-items */
#define DOWN    (TILE_ROWS / MINE_ROWS)
#define A_PITCH (TILE_ROWS + 4)
#define B_PITCH (TILE_COLS + 4)
#define A_FOURS (TILE_ROWS * TILE_DEPTH / 4 / GROUP) /* that a work-item loads of a tile */
#define B_FOURS (TILE_COLS * TILE_DEPTH / 4 / GROUP)
#define BAND    8 /* rows of tiles that groups take before they take the next column */

/* Where the e-th four of a tile is: `along` k, and `across` k, the row of a or the column of b. Of a
 * matrix that is stored with k outermost, fours lie across k. */
#define ACROSS_K(e, tile) ((e) % ((tile) / 4) * 4)
#define ALONG_K(e, tile)  ((e) / ((tile) / 4))

/* Matrix m, whose tile begins at `first` across k; `end` across k, and s.k along it. */
#define LOAD_FOURS(to, m, type, k_outermost, fours, tile, first, end, k0)                  \
    for (int i = 0; i < (fours); i++) {                                                    \
        const int e = lid + i * GROUP;                                                     \
        const i64 x = (first) + ((k_outermost) ? ACROSS_K(e, tile) : e / (TILE_DEPTH / 4)); \
        const i64 k = (k0) + ((k_outermost) ? ALONG_K(e, tile) : e % (TILE_DEPTH / 4) * 4); \
        to[i] = (float4)(0.0f);                                                            \
        if (x < (end) && k < s.k)                                                          \
            to[i] = (k_outermost) ? FOUR(type)(m + k * s.m.stride[2], x)                   \
                                  : FOUR(type)(m + x * s.m.stride[2], k);                  \
    }

#define STORE_FOURS(tile_, pitch, from, k_outermost, fours, tile)                          \
    for (int i = 0; i < (fours); i++) {                                                    \
        const int e = lid + i * GROUP;                                                     \
        if (k_outermost) {                                                                 \
            LOCAL float *to = tile_ + ALONG_K(e, tile) * (pitch) + ACROSS_K(e, tile);      \
            *(LOCAL float4 *)to = from[i];                                                 \
        } else {                                                                           \
            LOCAL float *to = tile_ + e % (TILE_DEPTH / 4) * 4 * (pitch) + e / (TILE_DEPTH / 4); \
            to[0] = from[i].x;                                                             \
            to[pitch] = from[i].y;                                                         \
            to[2 * (pitch)] = from[i].z;                                                   \
            to[3 * (pitch)] = from[i].w;                                                   \
        }                                                                                  \
    }

#define LOAD(k0)                                                                           \
    LOAD_FOURS(next_a, a, A_TYPE, TRANSPOSE_A, A_FOURS, TILE_ROWS, row0, s.m, k0)          \
    LOAD_FOURS(next_b, b, B_TYPE, !TRANSPOSE_B, B_FOURS, TILE_COLS, col0, s.n, k0)
#define STORE(which)                                                                       \
    STORE_FOURS(ta[which], A_PITCH, next_a, TRANSPOSE_A, A_FOURS, TILE_ROWS)               \
    STORE_FOURS(tb[which], B_PITCH, next_b, !TRANSPOSE_B, B_FOURS, TILE_COLS)

/* Groups take the tiles of BAND rows column by column: those that run at a time share what they
 * read. */
FUNC struct index tile_of(int group, i64 down, i64 across)
{
    const struct index at = index_of(group, 1, down * across);
    const i64 band = at.i2 / (BAND * across), first = band * BAND;
    const i64 rows = down - first < BAND ? down - first : BAND;
    const i64 rest = at.i2 - first * across;
    struct index tile;
    tile.i0 = at.i0;
    tile.i1 = first + rest % rows;
    tile.i2 = rest / rows;
    return tile;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(matmul_tile)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED float ta[2][TILE_DEPTH * A_PITCH] __attribute__((aligned(16)));
    SHARED float tb[2][TILE_DEPTH * B_PITCH] __attribute__((aligned(16)));
    float4 sum[MINE_ROWS][MINE_COLS / 4], next_a[A_FOURS], next_b[B_FOURS];
    const int lid = local_id(), x4 = lid % ACROSS, y4 = lid / ACROSS;
    const struct index at = tile_of(group_id(), (s.m + TILE_ROWS - 1) / TILE_ROWS,
                                    (s.n + TILE_COLS - 1) / TILE_COLS);
    const i64 row0 = at.i1 * TILE_ROWS, col0 = at.i2 * TILE_COLS;
    const struct index batch = batch_of(at.i0, s.batch1);

    a += matmul_at(s.a, batch, s.a_repeat0, s.a_repeat1);
    b += matmul_at(s.b, batch, s.b_repeat0, s.b_repeat1);
    c += row_at(s.c, batch);

    for (int y = 0; y < MINE_ROWS; y++)
        for (int x = 0; x < MINE_COLS / 4; x++)
            sum[y][x] = (float4)(0.0f);
    LOAD(0)
    STORE(0)
    BARRIER();
    for (i64 k0 = 0, which = 0; k0 < s.k; k0 += TILE_DEPTH, which ^= 1) {
        if (k0 + TILE_DEPTH < s.k) {
            LOAD(k0 + TILE_DEPTH)
        }
        for (int k = 0; k < TILE_DEPTH; k++) {
            LOCAL const float *va = ta[which] + k * A_PITCH + y4 * 4;
            LOCAL const float *vb = tb[which] + k * B_PITCH + x4 * 4;
            float4 fb[MINE_COLS / 4];
            for (int x = 0; x < MINE_COLS / 4; x++)
                fb[x] = *(LOCAL const float4 *)(vb + x * 4 * ACROSS);
            for (int y = 0; y < MINE_ROWS / 4; y++) {
                const float4 fa = *(LOCAL const float4 *)(va + y * 4 * DOWN);
                for (int x = 0; x < MINE_COLS / 4; x++) {
                    sum[y * 4][x] += fa.x * fb[x];
                    sum[y * 4 + 1][x] += fa.y * fb[x];
                    sum[y * 4 + 2][x] += fa.z * fb[x];
                    sum[y * 4 + 3][x] += fa.w * fb[x];
                }
            }
        }
        if (k0 + TILE_DEPTH < s.k) {
            STORE(which ^ 1)
        }
        BARRIER();
    }
    for (int y = 0; y < MINE_ROWS; y++)
        for (int x = 0; x < MINE_COLS / 4; x++) {
            const i64 row = row0 + y / 4 * 4 * DOWN + y4 * 4 + y % 4;
            const i64 col = col0 + x * 4 * ACROSS + x4 * 4;
            GLOBAL u8 *to = c + row * s.c.stride[2];
            float out[4];
            vstore4(sum[y][x], 0, out);
            const int left = s.n - col < 4 ? (int)(s.n - col) : 4;
            if (row >= s.m || left <= 0)
                continue;
            for (int i = 0; s.bias_type && i < left; i++)
                out[i] += load_any(bias + s.bias_offset, s.bias_type, col + i);
            if (s.c_type == STORAGE_F32 && left == 4 && ((size_t)to & 15) == 0)
                *(GLOBAL float4 *)(to + col * 4) = vload4(0, out);
            else
                store_piece(to, s.c_type, col, out, left);
        }
}
