/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T + bias, masked) . v: one group per ATTENTION_ROWS rows. A row is
 * one query of one head; the rows of a group read the same head of k and v.
 *
 * Keys come in tiles of ATTENTION_KEYS through group memory, converted once for all rows.
 * The softmax is online: each row keeps the largest score so far, the sum of exponentials
 * relative to it, and the weighted values, and rescales them whenever the maximum grows.
 * LANES work-items share a row. Each computes the row's softmax redundantly, which costs
 * less than exchanging it. */
#define ATTENTION_KEYS 16
#if GROUP == 1
#define ATTENTION_EACH 4 /* keys that one work-item takes at a time */
#else
#define ATTENTION_EACH 1
#endif
#define ATTENTION_STEP   (GROUP / LANES) /* rows at a time */
#define ATTENTION_KEPT   (ATTENTION_ROWS / ATTENTION_STEP)
#define ATTENTION_VALUES (ATTENTION_MAX_DIM / LANES) /* of a row, kept by one work-item */
/* A group may have fewer of both; the first conditions are for compilers that unroll. */
#define ATTENTION_IS_ROW(n)                                                                \
    ((n) < ATTENTION_KEPT && lid / LANES + (n)*ATTENTION_STEP < g.rows)
#define ATTENTION_IS_VALUE(d) ((d) < ATTENTION_VALUES && (d)*LANES < g.value_dim)
/* The number in the group of the n-th row that a work-item keeps. */
#define ATTENTION_ROW(n) (lid / LANES + (n)*ATTENTION_STEP)
#if GROUP == 1
#define ATTENTION_PITCH ATTENTION_MAX_DIM
#else
#define ATTENTION_PITCH (ATTENTION_MAX_DIM + 1) /* or a column would lie in one bank */
#endif

/* What a group computes: `rows` rows from first_row on, against `length` keys. The sizes of
 * heads are padded to whole blocks. */
struct attention_group {
    i64 batch, kv_head, first_row, length;
    int rows, dim, value_dim;
};

FUNC struct attention_group attention_group_of(ARGS(struct attention_args) a,
                                               GLOBAL const u8 *lengths, i64 group)
{
    const i64 all = a.queries * (a.heads / a.kv_heads);
    const i64 blocks = (all + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    struct attention_group g;
    g.batch = group / blocks / a.kv_heads;
    g.kv_head = group / blocks % a.kv_heads;
    g.first_row = group % blocks * ATTENTION_ROWS;
    g.rows = all - g.first_row < ATTENTION_ROWS ? (int)(all - g.first_row) : ATTENTION_ROWS;
    g.dim = (a.head_dim + BLOCK - 1) / BLOCK * BLOCK;
    g.value_dim = (a.value_dim + BLOCK - 1) / BLOCK * BLOCK;
    g.length = a.length;
    if (a.has_lengths)
        g.length = ((GLOBAL const int *)(lengths + a.lengths_offset))[g.batch];
    g.length = g.length < 0 ? 0 : g.length < a.keys_max ? g.length : a.keys_max;
    return g;
}

/* A row: which query, and the keys first .. end that it sees. */
struct attention_row {
    i64 query, head, first, end;
};

/* The r-th row of a group. */
FUNC struct attention_row attention_row_of(ARGS(struct attention_args) a,
                                           struct attention_group g, int r)
{
    const i64 heads = a.heads / a.kv_heads, row = g.first_row + r;
    struct attention_row at;
    at.query = row / heads;
    at.head = g.kv_head * heads + row % heads;
    const i64 next = g.length - a.queries + at.query + 1;
    at.end = a.causal && next < g.length ? next : g.length;
    at.first = a.window > 0 && at.end > a.window ? at.end - a.window : 0;
    return at;
}

/* What a work-item keeps of its rows: the largest score so far, the sum of exponentials
 * relative to it, and its part of the weighted values. */
struct attention_kept {
    struct attention_row row[ATTENTION_KEPT];
    float top[ATTENTION_KEPT], sum[ATTENTION_KEPT], out[ATTENTION_KEPT][ATTENTION_VALUES];
};

/* Starts all rows: query[r] = scale * q. */
FUNC void attention_begin(PRIVATE struct attention_kept *my, LOCAL float *query,
                          GLOBAL const u8 *q, ARGS(struct attention_args) a,
                          struct attention_group g, int lid)
{
    const int lane = lid % LANES;
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const int r = ATTENTION_ROW(n);
        const struct attention_row at = attention_row_of(a, g, r);
        my->row[n] = at;
        my->top[n] = NEG_INFINITY;
        my->sum[n] = 0.0f;
        for (int d = 0; ATTENTION_IS_VALUE(d); d++)
            my->out[n][d] = 0.0f;
        for (int d = lane * PIECE; d < g.dim; d += LANES * PIECE) {
            const int left = a.head_dim - d;
            float piece[PIECE] = { 0.0f };
            if (left > 0)
                load_piece(piece, q + at.query * a.q.stride[1] + at.head * a.q.stride[2],
                           a.q_type, d, left < PIECE ? left : PIECE);
            for (int i = 0; i < PIECE; i++)
                query[r * ATTENTION_MAX_DIM + d + i] = a.scale * piece[i];
        }
    }
}

/* to[i] = q . k[i] for ATTENTION_EACH keys; `dim` is a multiple of BLOCK. */
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

/* The score of one key that the row sees. */
FUNC float attention_score(float dot, GLOBAL const u8 *bias, i64 key,
                           ARGS(struct attention_args) a)
{
    float s = dot;
    if (a.softcap > 0.0f)
        s = a.softcap * tanh_f32(s / a.softcap);
    if (a.bias_type)
        s += load_any(bias, a.bias_type, key);
    return s;
}

/* score[r][t] for the tile's keys t0 .. t0 + keys - 1; -inf if the row does not see a key. */
FUNC void attention_scores(PRIVATE const struct attention_kept *my, LOCAL float *score,
                           LOCAL const float *query, LOCAL const float *tile,
                           GLOBAL const u8 *bias, i64 t0, int keys,
                           ARGS(struct attention_args) a, struct attention_group g, int lid)
{
    const int lane = lid % LANES;
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const int r = ATTENTION_ROW(n);
        const i64 row_bias = my->row[n].head * a.bias.stride[1] +
                             my->row[n].query * a.bias.stride[2];
        for (int t = lane * ATTENTION_EACH; t < ATTENTION_KEYS;
             t += LANES * ATTENTION_EACH) {
            float dots[ATTENTION_EACH] = { 0.0f };
            if (t < keys)
                attention_dots(dots, query + r * ATTENTION_MAX_DIM,
                               tile + t * ATTENTION_PITCH, g.dim);
            for (int i = 0; i < ATTENTION_EACH; i++) {
                const i64 key = t0 + t + i;
                float s = NEG_INFINITY;
                if (key >= my->row[n].first && key < my->row[n].end)
                    s = attention_score(dots[i], bias + row_bias, key, a);
                score[r * ATTENTION_KEYS + t + i] = s;
            }
        }
    }
}

/* grown[n] = the largest score so far, including those of this tile. */
FUNC void attention_grow(PRIVATE const struct attention_kept *my, PRIVATE float *grown,
                         LOCAL const float *score, struct attention_group g, int lid)
{
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const int r = ATTENTION_ROW(n);
        float scores[ATTENTION_KEYS];
        for (int t = 0; t < ATTENTION_KEYS; t++)
            scores[t] = score[r * ATTENTION_KEYS + t];
        grown[n] = max_f32(max_of(scores, ATTENTION_KEYS), my->top[n]);
    }
}

/* Turns scores into exponentials relative to `grown`, and rescales what is kept. */
FUNC void attention_rescale(PRIVATE struct attention_kept *my, PRIVATE const float *grown,
                            LOCAL float *score, struct attention_group g, int lid)
{
    const int lane = lid % LANES;
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const int r = ATTENTION_ROW(n);
        const float from = grown[n] == NEG_INFINITY ? 0.0f : grown[n];
        for (int t = lane; t < ATTENTION_KEYS; t += LANES)
            score[r * ATTENTION_KEYS + t] = exp_f32(score[r * ATTENTION_KEYS + t] - from);
        const float shrink = exp_f32(my->top[n] - from);
        my->top[n] = grown[n];
        my->sum[n] *= shrink;
        for (int d = 0; ATTENTION_IS_VALUE(d); d++)
            my->out[n][d] *= shrink;
    }
}

/* Adds the values of a tile, weighted by the exponentials. */
FUNC void attention_gather(PRIVATE struct attention_kept *my, LOCAL const float *score,
                           LOCAL const float *tile, i64 t0, int keys,
                           struct attention_group g, int lid)
{
    const int lane = lid % LANES;
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const int r = ATTENTION_ROW(n);
        const int from = my->row[n].first > t0 ? (int)(my->row[n].first - t0) : 0;
        const int to = my->row[n].end - t0 < keys ? (int)(my->row[n].end - t0) : keys;
        float weights[ATTENTION_KEYS]; /* 0 for keys that the row does not see */
        for (int t = 0; t < ATTENTION_KEYS; t++)
            weights[t] = score[r * ATTENTION_KEYS + t];
        my->sum[n] += sum_of(weights, ATTENTION_KEYS);
        attention_add(my->out[n], score + r * ATTENTION_KEYS, tile, from, to, g.value_dim,
                      lane);
    }
}

/* y = out / sum. */
FUNC void attention_store(PRIVATE struct attention_kept *my, GLOBAL u8 *y,
                          ARGS(struct attention_args) a, struct attention_group g, int lid)
{
    const int lane = lid % LANES;
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const float scale = my->sum[n] == 0.0f ? 0.0f : 1.0f / my->sum[n];
        for (int d = 0; ATTENTION_IS_VALUE(d); d++)
            my->out[n][d] *= scale;
        for (int d = lane * PIECE; d < a.value_dim; d += LANES * PIECE)
            store_piece(y + my->row[n].query * a.y.stride[1] +
                            my->row[n].head * a.y.stride[2],
                        a.y_type, d, my->out[n] + d / LANES,
                        a.value_dim - d < PIECE ? a.value_dim - d : PIECE);
    }
}

KERNEL(attention)
(GLOBAL u8 *y, GLOBAL const u8 *q, GLOBAL const u8 *k, GLOBAL const u8 *v,
 GLOBAL const u8 *bias, GLOBAL const u8 *lengths, ARGS(struct attention_args) a GRID)
{
    SHARED float query[ATTENTION_ROWS * ATTENTION_MAX_DIM];
    SHARED float tile[ATTENTION_KEYS * ATTENTION_PITCH];
    SHARED float score[ATTENTION_ROWS * ATTENTION_KEYS];
    struct attention_kept my;
    const int lid = local_id();
    const struct attention_group g = attention_group_of(a, lengths, group_id());

    y += a.y.offset + g.batch * a.y.stride[0];
    q += a.q.offset + g.batch * a.q.stride[0];
    k += a.k.offset + g.batch * a.k.stride[0] + g.kv_head * a.k.stride[2];
    v += a.v.offset + g.batch * a.v.stride[0] + g.kv_head * a.v.stride[2];
    if (a.bias_type)
        bias += a.bias.offset + g.batch * a.bias.stride[0];

    attention_begin(&my, query, q, a, g, lid);
    const i64 end = attention_row_of(a, g, g.rows - 1).end;
    for (i64 t0 = attention_row_of(a, g, 0).first; t0 < end; t0 += ATTENTION_KEYS) {
        const int keys = end - t0 < ATTENTION_KEYS ? (int)(end - t0) : ATTENTION_KEYS;
        float grown[ATTENTION_KEPT];
        load_tile(tile, ATTENTION_PITCH, 1, keys, g.dim, k + t0 * a.k.stride[1],
                  a.k.stride[1], a.k_type, 0, keys, a.head_dim, lid);
        BARRIER();
        attention_scores(&my, score, query, tile, bias, t0, keys, a, g, lid);
        BARRIER();
        load_tile(tile, ATTENTION_PITCH, 1, keys, g.value_dim, v + t0 * a.v.stride[1],
                  a.v.stride[1], a.v_type, 0, keys, a.value_dim, lid);
        attention_grow(&my, grown, score, g, lid);
        BARRIER();
        attention_rescale(&my, grown, score, g, lid);
        BARRIER();
        attention_gather(&my, score, tile, t0, keys, g, lid);
        BARRIER();
    }
    attention_store(&my, y, a, g, lid);
}
