/* SPDX-License-Identifier: MIT */
/* c = a . b + bias on a CPU: one work-item, a group by itself, per BLOCK_ROWS x BLOCK_COLS of c.
 *
 * BLOCK_DEPTH along k of both matrices are converted to float and laid out as they are read: STRIP_ROWS
 * rows of a side by side, and STRIP_COLS columns of b, two vectors. A strip of both adds to sums in
 * registers, and the sums of the block are kept in group memory until k ends. With one work-item
 * there are no barriers, between which an implementation on a CPU keeps everything in memory.
 *
 * The plan defines WIDE, the floats of a vector of the processor. */
#define BLOCK_ROWS  96
#define BLOCK_COLS  128
#define BLOCK_DEPTH 128
#define STRIP_ROWS  6
#define STRIP_COLS  (2 * WIDE)
#define load_wide   JOIN(vload, WIDE)
#define store_wide  JOIN(vstore, WIDE)
typedef JOIN(float, WIDE) wide;

/* A matrix of a batch as lines across k: rows of a, columns of b. */
struct lines {
    GLOBAL const u8 *first;
    i64 stride, count; /* of rows in memory, which are lines or, if k is outermost, numbers k */
    int type, k_outermost;
};

/* Lays out lines line .. line + lines - 1 and numbers k .. k + depth - 1 of each, strip by strip.
 * What is past the end of the matrix is zero. */
LOCAL_FUNC void lay_out(LOCAL float *to, struct lines m, i64 line, int lines, int strip, i64 k,
                        int depth)
{
    float piece[BLOCK];
    const int outer = m.k_outermost ? depth : lines, inner = m.k_outermost ? lines : depth;
    for (int o = 0; o < outer; o++)
        for (int i = 0; i < inner; i += BLOCK) {
            const i64 row = m.k_outermost ? k + o : line + o;
            const i64 at = m.k_outermost ? line + i : k + i;
            const i64 end = m.k_outermost ? m.count : k + depth;
            const int is_inside = (m.k_outermost || row < m.count) && at < end;
            const int step = inner - i < BLOCK ? inner - i : BLOCK;
            const int there = !is_inside ? 0 : end - at < step ? (int)(end - at) : step;
            if (there)
                load_piece(piece, m.first + row * m.stride, m.type, at, there);
            for (int x = there; x < step; x++)
                piece[x] = 0.0f;
            if (m.k_outermost)
                for (int x = 0; x < step; x++)
                    to[(i + x) / strip * strip * depth + o * strip + (i + x) % strip] =
                        piece[x];
            else
                for (int x = 0; x < step; x++)
                    to[o / strip * strip * depth + (i + x) * strip + o % strip] = piece[x];
        }
}

/* sums += a . b for one strip of both. */
LOCAL_FUNC void add_strip(LOCAL float *sums, LOCAL const float *a, LOCAL const float *b, int depth)
{
    wide s[STRIP_ROWS][2];
    for (int y = 0; y < STRIP_ROWS; y++) {
        s[y][0] = load_wide(0, sums + y * BLOCK_COLS);
        s[y][1] = load_wide(1, sums + y * BLOCK_COLS);
    }
    for (int k = 0; k < depth; k++) {
        const wide b0 = load_wide(0, b + k * STRIP_COLS), b1 = load_wide(1, b + k * STRIP_COLS);
        for (int y = 0; y < STRIP_ROWS; y++) {
            const wide v = a[k * STRIP_ROWS + y];
            s[y][0] += v * b0;
            s[y][1] += v * b1;
        }
    }
    for (int y = 0; y < STRIP_ROWS; y++) {
        store_wide(s[y][0], 0, sums + y * BLOCK_COLS);
        store_wide(s[y][1], 1, sums + y * BLOCK_COLS);
    }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
KERNEL(matmul_block)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED float ta[BLOCK_ROWS * BLOCK_DEPTH], tb[BLOCK_DEPTH * BLOCK_COLS];
    SHARED float sums[BLOCK_ROWS * BLOCK_COLS];
    const struct index at = index_of(group_id(), (s.m + BLOCK_ROWS - 1) / BLOCK_ROWS,
                                     (s.n + BLOCK_COLS - 1) / BLOCK_COLS);
    const i64 row = at.i1 * BLOCK_ROWS, col = at.i2 * BLOCK_COLS;
    const int rows = s.m - row < BLOCK_ROWS ? (int)(s.m - row) : BLOCK_ROWS;
    const int cols = s.n - col < BLOCK_COLS ? (int)(s.n - col) : BLOCK_COLS;
    const int across = (cols + STRIP_COLS - 1) / STRIP_COLS * STRIP_COLS;
    const int down = (rows + STRIP_ROWS - 1) / STRIP_ROWS * STRIP_ROWS;
    const struct index batch = batch_of(at.i0, s.batch1);
    struct lines ma, mb;
    ma.first = a + matmul_at(s.a, batch, s.a_repeat0, s.a_repeat1);
    ma.stride = s.a.stride[2];
    ma.count = s.m;
    ma.type = s.a_type;
    ma.k_outermost = s.transpose_a;
    mb.first = b + matmul_at(s.b, batch, s.b_repeat0, s.b_repeat1);
    mb.stride = s.b.stride[2];
    mb.count = s.n;
    mb.type = s.b_type;
    mb.k_outermost = !s.transpose_b;

    for (int i = 0; i < BLOCK_ROWS * BLOCK_COLS; i++)
        sums[i] = 0.0f;
    for (i64 k = 0; k < s.k; k += BLOCK_DEPTH) {
        const int depth = s.k - k < BLOCK_DEPTH ? (int)(s.k - k) : BLOCK_DEPTH;
        lay_out(ta, ma, row, down, STRIP_ROWS, k, depth);
        lay_out(tb, mb, col, across, STRIP_COLS, k, depth);
        for (int x = 0; x < across; x += STRIP_COLS)
            for (int y = 0; y < down; y += STRIP_ROWS)
                add_strip(sums + y * BLOCK_COLS + x, ta + y * depth, tb + x * depth, depth);
    }
    c += row_at(s.c, batch) + row * s.c.stride[2];
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < cols; x += BLOCK) {
            float out[BLOCK];
            const int left = cols - x < BLOCK ? cols - x : BLOCK;
            for (int i = 0; i < left; i++)
                out[i] = sums[y * BLOCK_COLS + x + i];
            if (s.bias_type) {
                float more[BLOCK];
                load_piece(more, bias + s.bias_offset, s.bias_type, col + x, left);
                for (int i = 0; i < left; i++)
                    out[i] += more[i];
            }
            store_piece(c + y * s.c.stride[2], s.c_type, col + x, out, left);
        }
}
