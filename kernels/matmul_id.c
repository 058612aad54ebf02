/* SPDX-License-Identifier: MIT */
/* c[t,u] = a[t,u] . b[e]^T + bias[e], e = ids[t,u]: one group per expert and MATMUL_COLS
 * columns.
 *
 * A group looks for its expert in all ids and multiplies up to MATMUL_ROWS rows that chose
 * it at a time, as matmul does, with tiles and squares of the same sizes. So the matrix of
 * an expert is read once for that many rows. */

/* The rows that a group computes: where those of a and c begin, and from which one on to look
 * for more. */
struct matmul_id_rows {
    i64 a[MATMUL_ROWS], c[MATMUL_ROWS];
    i64 next;
};

/* The expert that an id means; `experts` if there is none. */
FUNC i64 matmul_id_expert(i64 id, i64 experts)
{
    return id >= 0 && id < experts ? id : experts;
}

/* Finds up to MATMUL_ROWS rows that chose `expert`, from row `next` on, and returns how many.
 * A work-item looks at the choices of one token at a time. */
LOCAL_FUNC int matmul_id_find(LOCAL struct matmul_id_rows *rows, GLOBAL const u8 *ids,
                              ARGS(struct matmul_id_args) s, i64 expert, LOCAL int *scratch,
                              int lid)
{
    const i64 next = rows->next;
    int found = 0;
    BARRIER();
    for (i64 first = next / s.used; first < s.tokens && found < MATMUL_ROWS;
         first += GROUP) {
        const i64 t = first + lid, begin = t * s.used < next ? next - t * s.used : 0;
        GLOBAL const int *id = (GLOBAL const int *)(ids + t * s.ids_stride);
        int mine = 0, all;
        for (i64 u = begin; t < s.tokens && u < s.used; u++)
            mine += matmul_id_expert(id[u], s.experts) == expert;
        int at = found + group_scan(mine, &all, scratch, lid);
        for (i64 u = begin; mine > 0 && u < s.used && at < MATMUL_ROWS; u++)
            if (matmul_id_expert(id[u], s.experts) == expert) {
                rows->a[at] = t * s.a.stride[1] + u * s.a.stride[2];
                rows->c[at] = t * s.c.stride[1] + u * s.c.stride[2];
                if (++at == MATMUL_ROWS)
                    rows->next = t * s.used + u + 1;
            }
        found += all;
    }
    if (lid == 0 && found < MATMUL_ROWS)
        rows->next = s.tokens * s.used;
    BARRIER();
    return found < MATMUL_ROWS ? found : MATMUL_ROWS;
}

/* Loads ta[row][k] for the next MATMUL_DEPTH of k, zeros beyond `depth`, for as many rows as
 * squares need. */
LOCAL_FUNC void matmul_id_load(LOCAL float *ta, GLOBAL const u8 *a,
                               LOCAL const struct matmul_id_rows *rows, int count, int type,
                               i64 k, i64 depth, int lid)
{
    for (int y = lid / LANES; y < count + MATMUL_SQUARE_ROWS - 1 && y < MATMUL_ROWS;
         y += GROUP / LANES)
        for (int x = lid % LANES * PIECE; x < MATMUL_DEPTH; x += LANES * PIECE) {
            float v[PIECE] = { 0.0f };
            const i64 left = y < count ? depth - x : 0;
            if (left > 0)
                load_piece(v, a + rows->a[y], type, k + x,
                           left < PIECE ? (int)left : PIECE);
            for (int i = 0; i < PIECE; i++)
                ta[y * MATMUL_A_PITCH + x + i] = v[i];
        }
}

/* Adds the bias to one square and stores it. */
LOCAL_FUNC void matmul_id_store(GLOBAL u8 *c, PRIVATE const float *sum,
                                GLOBAL const u8 *bias, int bias_type, int c_type,
                                LOCAL const struct matmul_id_rows *rows,
                                struct matmul_corner at, int y0, int x0)
{
    const int left = at.cols - x0 < MATMUL_SQUARE_COLS ? (int)(at.cols - x0)
                                                       : MATMUL_SQUARE_COLS;
    for (int y = 0; y < MATMUL_SQUARE_ROWS && y0 + y < at.rows; y++) {
        float out[MATMUL_SQUARE_COLS]; /* so that sum is only indexed by constants */
        for (int x = 0; x < MATMUL_SQUARE_COLS; x++)
            out[x] = sum[y * MATMUL_SQUARE_COLS + x];
        for (int x = 0; bias_type && x < left; x++)
            out[x] += load_any(bias, bias_type, at.col + x0 + x);
        if (left > 0)
            store_piece(c + rows->c[y0 + y], c_type, at.col + x0, out, left);
    }
}

KERNEL(matmul_id)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *ids,
 GLOBAL const u8 *bias, ARGS(struct matmul_id_args) s GRID)
{
    SHARED float ta[MATMUL_ROWS * MATMUL_A_PITCH], tb[MATMUL_DEPTH * MATMUL_B_PITCH];
    SHARED struct matmul_id_rows rows;
    SHARED int scratch[GROUP];
    const int lid = local_id();
    const i64 across = (s.n + MATMUL_COLS - 1) / MATMUL_COLS;
    const i64 expert = group_id() / across;
    const int known = expert < s.experts; /* or its rows get zeros */
    const i64 depth = known ? s.k : 0;
    struct matmul_corner at;
    at.row = 0;
    at.col = group_id() % across * MATMUL_COLS;
    at.cols = s.n - at.col < MATMUL_COLS ? s.n - at.col : MATMUL_COLS;

    a += s.a.offset;
    c += s.c.offset;
    ids += s.ids_offset;
    if (known)
        b += s.b.offset + expert * s.b.stride[1] + at.col * s.b.stride[2];
    if (known && s.bias_type)
        bias += s.bias_offset + expert * s.bias_stride;

    if (lid == 0)
        rows.next = 0;
    BARRIER();
    for (;;) {
        const int count = matmul_id_find(&rows, ids, s, expert, scratch, lid);
        float sum[MATMUL_KEPT][MATMUL_SQUARE_ROWS * MATMUL_SQUARE_COLS] = { { 0.0f } };
        if (count == 0)
            break;
        at.rows = count;
        for (i64 k = 0; k < depth; k += MATMUL_DEPTH) {
            matmul_id_load(ta, a, &rows, count, s.a_type, k, depth - k, lid);
            load_tile(tb, 1, MATMUL_B_PITCH, MATMUL_COLS, MATMUL_DEPTH, b, s.b.stride[2],
                      s.b_type, k, at.cols, depth - k, lid);
            BARRIER();
            for (int n = 0; n < MATMUL_KEPT; n++) {
                const int y = (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS;
                const int x = (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS;
                if (y < count && x < at.cols)
                    matmul_square(sum[n], ta + y * MATMUL_A_PITCH, tb + x);
            }
            BARRIER();
        }
        for (int n = 0; n < MATMUL_KEPT; n++)
            matmul_id_store(c, sum[n], bias, known ? s.bias_type : 0, s.c_type, &rows, at,
                            (lid + n * GROUP) / MATMUL_ACROSS * MATMUL_SQUARE_ROWS,
                            (lid + n * GROUP) % MATMUL_ACROSS * MATMUL_SQUARE_COLS);
        BARRIER();
    }
}
