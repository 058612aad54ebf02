/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T + bias, masked) . v: one group per ATTENTION_ROWS rows, a row
 * being one query of one head, of those that read one head of k and v.
 *
 * Keys come in tiles of ATTENTION_KEYS through group memory, converted once for all
 * rows; the softmax is online: per row the largest score so far, the sum of exponentials
 * relative to it, and the weighted values, rescaled whenever the maximum grows. LANES
 * work-items share a row and go through its softmax redundantly, which costs less than
 * telling each other. */
#define ATTENTION_KEYS 16
#if GROUP == 1
#define ATTENTION_EACH 4 /* keys that one work-item takes at a time */
#else
#define ATTENTION_EACH 1
#endif
#define ATTENTION_STEP   (GROUP / LANES) /* rows at a time */
#define ATTENTION_KEPT   (ATTENTION_ROWS / ATTENTION_STEP)
#define ATTENTION_VALUES (ATTENTION_MAX_DIM / LANES) /* of a row, kept by one work-item */
/* Of these there may be fewer; the first condition is for compilers that unroll. */
#define ATTENTION_IS_ROW(n)                                                                \
    ((n) < ATTENTION_KEPT && lid / LANES + (n)*ATTENTION_STEP < rows)
#define ATTENTION_IS_VALUE(d) ((d) < ATTENTION_VALUES && (d)*LANES < value_dim)
#if GROUP == 1
#define ATTENTION_PITCH ATTENTION_MAX_DIM
#else
#define ATTENTION_PITCH (ATTENTION_MAX_DIM + 1) /* or a column would lie in one bank */
#endif

/* A row: which query, and the keys first .. end that it sees. */
struct attention_row {
    i64 query, head, first, end;
};

FUNC struct attention_row attention_row_of(ARGS(struct attention_args) a, i64 kv_head,
                                           i64 row, i64 length)
{
    const i64 heads = a.heads / a.kv_heads;
    struct attention_row r;
    r.query = row / heads;
    r.head = kv_head * heads + row % heads;
    const i64 next = length - a.queries + r.query + 1;
    r.end = a.causal && next < length ? next : length;
    r.first = a.window > 0 && r.end > a.window ? r.end - a.window : 0;
    return r;
}

/* to[i] = q . k[i] for ATTENTION_EACH keys; `dim` is padded with zeros to whole blocks. */
FUNC void attention_dots(PRIVATE float *to, LOCAL const float *q, LOCAL const float *k,
                         int dim)
{
    vec sum[ATTENTION_EACH];
    for (int i = 0; i < ATTENTION_EACH; i++)
        sum[i] = load_vec(q) * load_vec(k + i * ATTENTION_PITCH);
    for (int d = VEC; d < dim; d += VEC)
        for (int i = 0; i < ATTENTION_EACH; i++)
            sum[i] += load_vec(q + d) * load_vec(k + i * ATTENTION_PITCH + d);
    for (int i = 0; i < ATTENTION_EACH; i++)
        to[i] = vec_sum(sum[i]);
}

/* out += p[t] * v[t] for keys first .. end, this work-item's values. */
FUNC void attention_add(PRIVATE float *out, LOCAL const float *p, LOCAL const float *v,
                        int first, int end, int dim, int lane)
{
    for (int d = lane * VEC; d < dim; d += LANES * VEC) {
        vec sum = load_vec(out + d / LANES);
        for (int t = first; t < end; t++)
            sum += p[t] * load_vec(v + t * ATTENTION_PITCH + d);
        store_vec(out + d / LANES, sum);
    }
}

KERNEL(attention)
(GLOBAL u8 *y, GLOBAL const u8 *q, GLOBAL const u8 *k, GLOBAL const u8 *v,
 GLOBAL const u8 *bias, GLOBAL const u8 *lengths, ARGS(struct attention_args) a GRID)
{
    SHARED float query[ATTENTION_ROWS * ATTENTION_MAX_DIM];
    SHARED float tile[ATTENTION_KEYS * ATTENTION_PITCH];
    SHARED float score[ATTENTION_ROWS * ATTENTION_KEYS];
    float top[ATTENTION_KEPT], sum[ATTENTION_KEPT], out[ATTENTION_KEPT][ATTENTION_VALUES];
    struct attention_row row[ATTENTION_KEPT];
    const int lid = local_id(), lane = lid % LANES;

    const int dim = (a.head_dim + BLOCK - 1) / BLOCK * BLOCK;
    const int value_dim = (a.value_dim + BLOCK - 1) / BLOCK * BLOCK;

    const i64 all = a.queries * (a.heads / a.kv_heads);
    const i64 blocks = (all + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    const i64 batch = group_id() / blocks / a.kv_heads;
    const i64 kv_head = group_id() / blocks % a.kv_heads;
    const i64 first_row = group_id() % blocks * ATTENTION_ROWS;
    const int rows = all - first_row < ATTENTION_ROWS ? (int)(all - first_row)
                                                      : ATTENTION_ROWS;

    i64 length = a.length;
    if (a.has_lengths)
        length = ((GLOBAL const int *)(lengths + a.lengths_offset))[batch];
    length = length < 0 ? 0 : length < a.keys_max ? length : a.keys_max;

    y += a.y.offset + batch * a.y.stride[0];
    q += a.q.offset + batch * a.q.stride[0];
    k += a.k.offset + batch * a.k.stride[0] + kv_head * a.k.stride[2];
    v += a.v.offset + batch * a.v.stride[0] + kv_head * a.v.stride[2];
    if (a.bias_type)
        bias += a.bias.offset + batch * a.bias.stride[0];

    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const int r = lid / LANES + n * ATTENTION_STEP;
        row[n] = attention_row_of(a, kv_head, first_row + r, length);
        top[n] = NEG_INFINITY;
        sum[n] = 0.0f;
        for (int d = 0; ATTENTION_IS_VALUE(d); d++)
            out[n][d] = 0.0f;
        for (int d = lane * PIECE; d < dim; d += LANES * PIECE) {
            const int left = a.head_dim - d;
            float piece[PIECE] = { 0.0f };
            if (left > 0)
                load_piece(piece,
                           q + row[n].query * a.q.stride[1] + row[n].head * a.q.stride[2],
                           a.q_type, d, left < PIECE ? left : PIECE);
            for (int i = 0; i < PIECE; i++)
                query[r * ATTENTION_MAX_DIM + d + i] = a.scale * piece[i];
        }
    }
    const i64 begin = attention_row_of(a, kv_head, first_row, length).first;
    const i64 end = attention_row_of(a, kv_head, first_row + rows - 1, length).end;

    for (i64 t0 = begin; t0 < end; t0 += ATTENTION_KEYS) {
        const int keys = end - t0 < ATTENTION_KEYS ? (int)(end - t0) : ATTENTION_KEYS;
        load_tile(tile, ATTENTION_PITCH, 1, keys, dim, k + t0 * a.k.stride[1],
                  a.k.stride[1], a.k_type, 0, keys, a.head_dim, lid);
        BARRIER();
        for (int n = 0; ATTENTION_IS_ROW(n); n++) {
            const int r = lid / LANES + n * ATTENTION_STEP;
            const i64 row_bias = row[n].head * a.bias.stride[1] +
                                 row[n].query * a.bias.stride[2];
            for (int t = lane * ATTENTION_EACH; t < ATTENTION_KEYS;
                 t += LANES * ATTENTION_EACH) {
                float dots[ATTENTION_EACH] = { 0.0f };
                if (t < keys)
                    attention_dots(dots, query + r * ATTENTION_MAX_DIM,
                                   tile + t * ATTENTION_PITCH, dim);
                for (int i = 0; i < ATTENTION_EACH; i++) {
                    const i64 key = t0 + t + i;
                    float s = NEG_INFINITY;
                    if (key >= row[n].first && key < row[n].end) {
                        s = dots[i];
                        if (a.softcap > 0.0f)
                            s = a.softcap * tanh_f32(s / a.softcap);
                        if (a.bias_type)
                            s += load_any(bias + row_bias, a.bias_type, key);
                    }
                    score[r * ATTENTION_KEYS + t + i] = s;
                }
            }
        }
        BARRIER();
        load_tile(tile, ATTENTION_PITCH, 1, keys, value_dim, v + t0 * a.v.stride[1],
                  a.v.stride[1], a.v_type, 0, keys, a.value_dim, lid);
        float grown[ATTENTION_KEPT];
        for (int n = 0; ATTENTION_IS_ROW(n); n++) {
            const int r = lid / LANES + n * ATTENTION_STEP;
            float scores[ATTENTION_KEYS];
            for (int t = 0; t < ATTENTION_KEYS; t++)
                scores[t] = score[r * ATTENTION_KEYS + t];
            grown[n] = max_f32(max_of(scores, ATTENTION_KEYS), top[n]);
        }
        BARRIER();
        for (int n = 0; ATTENTION_IS_ROW(n); n++) {
            const int r = lid / LANES + n * ATTENTION_STEP;
            const float from = grown[n] == NEG_INFINITY ? 0.0f : grown[n];
            for (int t = lane; t < ATTENTION_KEYS; t += LANES)
                score[r * ATTENTION_KEYS + t] =
                    exp_f32(score[r * ATTENTION_KEYS + t] - from);
            const float shrink = exp_f32(top[n] - from);
            top[n] = grown[n];
            sum[n] *= shrink;
            for (int d = 0; ATTENTION_IS_VALUE(d); d++)
                out[n][d] *= shrink;
        }
        BARRIER();
        for (int n = 0; ATTENTION_IS_ROW(n); n++) {
            const int r = lid / LANES + n * ATTENTION_STEP;
            const int from = row[n].first > t0 ? (int)(row[n].first - t0) : 0;
            const int to = row[n].end - t0 < keys ? (int)(row[n].end - t0) : keys;
            float weights[ATTENTION_KEYS]; /* exp(-inf) is 0 where the row does not see */
            for (int t = 0; t < ATTENTION_KEYS; t++)
                weights[t] = score[r * ATTENTION_KEYS + t];
            sum[n] += sum_of(weights, ATTENTION_KEYS);
            attention_add(out[n], score + r * ATTENTION_KEYS, tile, from, to, value_dim,
                          lane);
        }
        BARRIER();
    }
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const float scale = sum[n] == 0.0f ? 0.0f : 1.0f / sum[n];
        for (int d = 0; ATTENTION_IS_VALUE(d); d++)
            out[n][d] *= scale;
        for (int d = lane * PIECE; d < a.value_dim; d += LANES * PIECE)
            store_piece(y + row[n].query * a.y.stride[1] + row[n].head * a.y.stride[2],
                        a.y_type, d, out[n] + d / LANES,
                        a.value_dim - d < PIECE ? a.value_dim - d : PIECE);
    }
}
