/* SPDX-License-Identifier: MIT */
/* y = x * weight + bias, two-dimensional cross-correlation: one group per MATMUL_ROWS channels
 * and MATMUL_COLS neighbours of their planes.
 *
 * It is a matrix product, computed with the tiles and squares of matmul: a row for each channel,
 * a column for each place (i, j) of a plane, and along k the taps (c, p, q) of the kernel. The
 * matrix of taps and places is never stored: a tile of it is read from x. */

/* The taps of a tile: where their weights and their planes of x are, and how far down and right
 * of a place they read. */
struct conv2d_taps {
    i64 weight[MATMUL_DEPTH], plane[MATMUL_DEPTH], down[MATMUL_DEPTH], right[MATMUL_DEPTH];
};

/* The places of a tile: the row and column of x that their first tap reads, and how many places
 * are left in their row of y, this one included. */
struct conv2d_places {
    i64 row[MATMUL_COLS], col[MATMUL_COLS], left[MATMUL_COLS];
};

LOCAL_FUNC void conv2d_find_taps(LOCAL struct conv2d_taps *taps, ARGS(struct conv2d_args) s,
                                 i64 first, i64 count, int lid)
{
    for (int t = lid; t < MATMUL_DEPTH && t < count; t += GROUP) {
        const i64 q = (first + t) % s.kernel_width, rest = (first + t) / s.kernel_width;
        const i64 p = rest % s.kernel_height, c = rest / s.kernel_height;
        taps->weight[t] = c * s.weight.stride[1] + p * s.weight.stride[2] +
                          q * (s.weight_type == STORAGE_F32 ? 4 : 2);
        taps->plane[t] = c * s.x.stride[1];
        taps->down[t] = p * s.dilation_h;
        taps->right[t] = q * s.dilation_w;
    }
}

LOCAL_FUNC void conv2d_find_places(LOCAL struct conv2d_places *places,
                                   ARGS(struct conv2d_args) s, i64 first, i64 count,
                                   int lid)
{
    for (int i = lid; i < count; i += GROUP) {
        const i64 row = (first + i) / s.out_width, col = (first + i) % s.out_width;
        places->row[i] = row * s.stride_h - s.pad_h;
        places->col[i] = col * s.stride_w - s.pad_w;
        places->left[i] = s.out_width - col;
    }
}

/* Loads ta[channel][tap]. Where weights are not contiguous, one at a time. */
LOCAL_FUNC void conv2d_load_weights(LOCAL float *ta, GLOBAL const u8 *weight,
                                    LOCAL const struct conv2d_taps *taps,
                                    ARGS(struct conv2d_args) s, i64 channels, i64 first,
                                    i64 count, int lid)
{
    if (s.flat) {
        load_tile(ta, MATMUL_A_PITCH, 1, MATMUL_ROWS, MATMUL_DEPTH, weight,
                  s.weight.stride[0], s.weight_type, first, channels, count, lid);
        return;
    }
    for (int e = lid; e < MATMUL_ROWS * MATMUL_DEPTH; e += GROUP) {
        const int o = e / MATMUL_DEPTH, t = e % MATMUL_DEPTH;
        ta[o * MATMUL_A_PITCH + t] =
            o < channels && t < count
                ? load_any(weight + o * s.weight.stride[0] + taps->weight[t], s.weight_type,
                           0)
                : 0.0f;
    }
}

/* Loads `n` elements of a row of x, `step` apart, zeros outside of it. */
FUNC void conv2d_load_row(PRIVATE float *to, int n, GLOBAL const u8 *row, int type, i64 col,
                          i64 step, i64 width)
{
    const i64 skip = col < 0 ? -col : 0, end = width - col < n ? width - col : n;
    for (int i = 0; i < n; i++)
        to[i] = 0.0f;
    if (PIECE > 1 && step == 1) {
        if (skip < end)
            load_piece(to + skip, row, type, col + skip, (int)(end - skip));
    } else {
        for (int i = 0; i < n; i++)
            if (col + i * step >= 0 && col + i * step < width)
                to[i] = load_any(row, type, col + i * step);
    }
}

/* Loads tb[tap][place]. A work-item takes up to PIECE places of one row of y at a time. */
LOCAL_FUNC void conv2d_load_places(LOCAL float *tb, GLOBAL const u8 *x,
                                   LOCAL const struct conv2d_taps *taps,
                                   LOCAL const struct conv2d_places *places,
                                   ARGS(struct conv2d_args) s, i64 count, i64 taps_left,
                                   int lid)
{
    int n = 1;
    for (int e = lid; e < MATMUL_DEPTH * MATMUL_COLS; e += n * GROUP) {
        const int t = e / MATMUL_COLS, i = e % MATMUL_COLS;
        const int used = t < taps_left && i < count;
        float v[PIECE] = { 0.0f };
        n = MATMUL_COLS - i < PIECE ? MATMUL_COLS - i : PIECE;
        if (used) {
            const i64 row = places->row[i] + taps->down[t];
            n = count - i < n ? (int)(count - i) : n;
            n = places->left[i] < n ? (int)places->left[i] : n;
            if (row >= 0 && row < s.height)
                conv2d_load_row(v, n, x + taps->plane[t] + row * s.x.stride[2], s.x_type,
                                places->col[i] + taps->right[t], s.stride_w, s.width);
        }
        for (int j = 0; j < n; j++)
            tb[t * MATMUL_B_PITCH + i + j] = v[j];
    }
}

/* Adds the bias to one square and stores it; `y` and `bias` are those of the tile's first
 * channel. */
FUNC void conv2d_store(GLOBAL u8 *y, PRIVATE const float *sum, GLOBAL const u8 *bias,
                       ARGS(struct conv2d_args) s, struct matmul_corner at, int y0, int x0)
{
    const int left = at.cols - x0 < MATMUL_SQUARE_COLS ? (int)(at.cols - x0)
                                                       : MATMUL_SQUARE_COLS;
    for (int o = 0; o < MATMUL_SQUARE_ROWS && y0 + o < at.rows; o++) {
        const float more = s.bias_type ? load_any(bias, s.bias_type, at.row + y0 + o)
                                       : 0.0f;
        float out[MATMUL_SQUARE_COLS]; /* so that sum is only indexed by constants */
        for (int i = 0; i < MATMUL_SQUARE_COLS; i++)
            out[i] = sum[o * MATMUL_SQUARE_COLS + i] + more;
        for (int i = 0, n = 0; i < left; i += n) {
            const i64 place = at.col + x0 + i;
            const i64 row = place / s.out_width, col = place % s.out_width;
            n = s.out_width - col < left - i ? (int)(s.out_width - col) : left - i;
            store_piece(y + (y0 + o) * s.y.stride[1] + row * s.y.stride[2], s.y_type, col,
                        out + i, n);
        }
    }
}

KERNEL(conv2d)
(GLOBAL u8 *y, GLOBAL const u8 *x, GLOBAL const u8 *weight, GLOBAL const u8 *bias,
 ARGS(struct conv2d_args) s GRID)
{
    SHARED float ta[MATMUL_ROWS * MATMUL_A_PITCH], tb[MATMUL_DEPTH * MATMUL_B_PITCH];
    SHARED struct conv2d_taps taps;
    SHARED struct conv2d_places places;
    float sum[MATMUL_KEPT][MATMUL_SQUARE_ROWS * MATMUL_SQUARE_COLS] = { { 0.0f } };
    const int lid = local_id();
    const i64 plane = s.out_height * s.out_width;
    const i64 across = (plane + MATMUL_COLS - 1) / MATMUL_COLS;
    const i64 down = (s.outs + MATMUL_ROWS - 1) / MATMUL_ROWS;
    const i64 which = group_id() / across / down, g = which % s.groups,
              b = which / s.groups;
    const i64 count = s.ins * s.kernel_height * s.kernel_width;
    struct matmul_corner at;
    at.col = group_id() % across * MATMUL_COLS;
    at.row = group_id() / across % down * MATMUL_ROWS;
    at.rows = s.outs - at.row < MATMUL_ROWS ? s.outs - at.row : MATMUL_ROWS;
    at.cols = plane - at.col < MATMUL_COLS ? plane - at.col : MATMUL_COLS;
    at.row += g * s.outs;

    x += s.x.offset + b * s.x.stride[0] + g * s.ins * s.x.stride[1];
    y += s.y.offset + b * s.y.stride[0] + at.row * s.y.stride[1];
    weight += s.weight.offset + at.row * s.weight.stride[0];
    if (s.bias_type)
        bias += s.bias_offset;

    conv2d_find_places(&places, s, at.col, at.cols, lid);
    for (i64 k = 0; k < count; k += MATMUL_DEPTH) {
        conv2d_find_taps(&taps, s, k, count - k, lid);
        BARRIER();
        conv2d_load_weights(ta, weight, &taps, s, at.rows, k, count - k, lid);
        conv2d_load_places(tb, x, &taps, &places, s, at.cols, count - k, lid);
        BARRIER();
        for (int n = 0; n < MATMUL_KEPT; n++) {
            const int o = (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS;
            const int i = (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS;
            if (o < at.rows && i < at.cols)
                matmul_square(sum[n], ta + o * MATMUL_A_PITCH, tb + i);
        }
        BARRIER();
    }
    for (int n = 0; n < MATMUL_KEPT; n++)
        conv2d_store(y, sum[n], bias, s, at,
                     (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS,
                     (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS);
}
