/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T + slope bias, masked) . v: one group per ATTENTION_ROWS rows. A row
 * is one query of one head; the rows of a group read the same head of k and v.
 *
 * Keys come in tiles of ATTENTION_KEYS through group memory, converted once for all rows; of
 * longer heads, ATTENTION_PART elements at a time. The softmax is online: each row keeps the
 * largest score so far, the sum of exponentials relative to it, and the weighted values, and
 * rescales them whenever the maximum grows. LANES work-items share a row. Each computes the
 * row's softmax redundantly, which costs less than exchanging it. */
#define ATTENTION_KEYS 16
#define ATTENTION_PART 256 /* so that all of SHARED stays below 32 KiB */
/* Keys that one work-item takes at a time: of products, and of scores. */
#if GROUP == 1
#define ATTENTION_EACH 4
#define ATTENTION_SPAN ATTENTION_KEYS
#else
#define ATTENTION_EACH 1
#define ATTENTION_SPAN 1
#endif
#define ATTENTION_STEP   (GROUP / LANES) /* rows at a time */
#define ATTENTION_KEPT   (ATTENTION_ROWS / ATTENTION_STEP)
#define ATTENTION_VALUES (ATTENTION_MAX_DIM / LANES) /* of a row, kept by one work-item */
/* A group may have fewer of both; the first conditions are for compilers that unroll, and
 * would keep loops from being vectorised. */
#define ATTENTION_IS_ROW(n)                                                                \
    ((n) < ATTENTION_KEPT && lid / LANES + (n)*ATTENTION_STEP < g.rows)
#if GROUP == 1
#define ATTENTION_IS_VALUE(d) ((d) < g.value_dim)
#else
#define ATTENTION_IS_VALUE(d) ((d) < ATTENTION_VALUES && (d)*LANES < g.value_dim)
#endif
/* The number in the group of the n-th row that a work-item keeps. */
#define ATTENTION_ROW(n) (lid / LANES + (n)*ATTENTION_STEP)
#if GROUP == 1
#define ATTENTION_PITCH ATTENTION_PART
#else
#define ATTENTION_PITCH (ATTENTION_PART + 1) /* or a column would lie in one bank */
#endif

/* What a group computes: `rows` rows from first_row on, against `length` keys. The sizes of
 * heads are padded to whole blocks, at least one. */
struct attention_group {
    i64 batch, kv_head, first_row, length;
    int rows, dim, value_dim;
};

FUNC struct attention_group attention_group_of(ARGS(struct attention_args) a,
                                               GLOBAL const u8 *lengths, int group)
{
    const i64 all = a.queries * (a.heads / a.kv_heads);
    const i64 blocks = (all + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    const struct index at = index_of(group, a.kv_heads, blocks);
    struct attention_group g;
    g.batch = at.i0;
    g.kv_head = at.i1;
    g.first_row = at.i2 * ATTENTION_ROWS;
    g.rows = all - g.first_row < ATTENTION_ROWS ? (int)(all - g.first_row) : ATTENTION_ROWS;
    g.dim = a.head_dim > 0 ? (a.head_dim + BLOCK - 1) / BLOCK * BLOCK : BLOCK;
    g.value_dim = (a.value_dim + BLOCK - 1) / BLOCK * BLOCK;
    g.length = a.length;
    if (a.has_lengths)
        g.length = ((GLOBAL const int *)(lengths + a.lengths_offset))[g.batch];
    g.length = g.length < 0 ? 0 : g.length < a.keys_max ? g.length : a.keys_max;
    return g;
}

/* The elements of a head that lie in group memory from element `first` on. */
FUNC int attention_part(int dim, int first)
{
    return dim - first < ATTENTION_PART ? dim - first : ATTENTION_PART;
}

/* A row: which query, its position, and the keys first .. end that it sees. */
struct attention_row {
    i64 query, head, position, first, end;
};

/* The r-th row of a group. */
FUNC struct attention_row attention_row_of(ARGS(struct attention_args) a,
                                           struct attention_group g, int r)
{
    const i64 heads = a.heads / a.kv_heads, row = g.first_row + r;
    struct attention_row at;
    at.query = row / heads;
    at.head = g.kv_head * heads + row % heads;
    at.position = g.length - a.queries + at.query;
    at.end = a.causal && at.position + 1 < g.length ? at.position + 1 : g.length;
    at.first = a.window > 0 && at.end > a.window ? at.end - a.window : 0;
    return at;
}

/* What a work-item keeps of its rows: where the bias of a row begins, the factor of it, the
 * largest score so far, the sum of exponentials relative to it, and its part of the weighted
 * values. */
struct attention_kept {
    struct attention_row row[ATTENTION_KEPT];
    i64 bias[ATTENTION_KEPT];
    float slope[ATTENTION_KEPT], top[ATTENTION_KEPT], sum[ATTENTION_KEPT];
    float out[ATTENTION_KEPT][ATTENTION_VALUES];
};

/* Starts all rows. A sink is a score that has no value. */
FUNC void attention_begin(PRIVATE struct attention_kept *my, GLOBAL const u8 *slopes,
                          GLOBAL const u8 *sinks, ARGS(struct attention_args) a,
                          struct attention_group g, int lid)
{
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        const struct attention_row row = attention_row_of(a, g, ATTENTION_ROW(n));
        struct index at;
        at.i0 = g.batch;
        at.i1 = row.head;
        at.i2 = row.query;
        my->row[n] = row;
        my->bias[n] = a.bias_type ? repeated_row_at(a.bias, a.bias_extents, at) : 0;
        my->slope[n] = a.has_slopes ? load_f32(slopes + a.slopes_offset, row.head) : 1.0f;
        const float sink = a.has_sinks ? load_f32(sinks + a.sinks_offset, row.head)
                                       : NEG_INFINITY;
        my->top[n] = max_f32(sink, NEG_INFINITY);
        my->sum[n] = sink == NEG_INFINITY ? 0.0f : 1.0f + (sink - sink); /* 1, or NaN */
        for (int d = 0; ATTENTION_IS_VALUE(d); d++)
            my->out[n][d] = 0.0f;
    }
}

/* query[r] = scale * q, of the elements from `first` on. */
LOCAL_FUNC void attention_query(PRIVATE const struct attention_kept *my, LOCAL float *query,
                                GLOBAL const u8 *q, int first,
                                ARGS(struct attention_args) a, struct attention_group g,
                                int lid)
{
    const int dim = attention_part(g.dim, first);
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        GLOBAL const u8 *from = q + my->row[n].query * a.q.stride[1] +
                                my->row[n].head * a.q.stride[2];
        for (int d = lid % LANES * PIECE; d < dim; d += LANES * PIECE) {
            const int left = a.head_dim - first - d;
            float piece[PIECE] = { 0.0f };
            if (left > 0)
                load_piece(piece, from, a.q_type, first + d, left < PIECE ? left : PIECE);
            for (int i = 0; i < PIECE; i++)
                query[ATTENTION_ROW(n) * ATTENTION_PART + d + i] = a.scale * piece[i];
        }
    }
}

/* to[i] = q . k[i] for ATTENTION_EACH keys; `dim` is a multiple of BLOCK. */
LOCAL_FUNC void attention_dots(PRIVATE float *to, LOCAL const float *q,
                               LOCAL const float *k, int dim)
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
LOCAL_FUNC void attention_add(PRIVATE float *out, LOCAL const float *p,
                              LOCAL const float *v, int first, int end, int dim, int lane)
{
    for (int d = lane * VEC; d < dim; d += LANES * VEC) {
        vec sum = load_vec(out + d / LANES);
        for (int t = first; t < end; t++)
            sum += p[t] * load_vec(v + t * ATTENTION_PITCH + d);
        store_vec(out + d / LANES, sum);
    }
}

/* score[r][t] = q . k of the tile's first `keys` keys, of the elements from `first` on: added
 * to those before. */
LOCAL_FUNC void attention_multiply(LOCAL float *score, LOCAL const float *query,
                                   LOCAL const float *tile, int first, int keys,
                                   struct attention_group g, int lid)
{
    for (int n = 0; ATTENTION_IS_ROW(n); n++)
        for (int t = lid % LANES * ATTENTION_EACH; t < keys; t += LANES * ATTENTION_EACH) {
            LOCAL float *to = score + ATTENTION_ROW(n) * ATTENTION_KEYS + t;
            float dots[ATTENTION_EACH];
            attention_dots(dots, query + ATTENTION_ROW(n) * ATTENTION_PART,
                           tile + t * ATTENTION_PITCH, attention_part(g.dim, first));
            for (int i = 0; i < ATTENTION_EACH; i++)
                to[i] = first > 0 ? to[i] + dots[i] : dots[i];
        }
}

/* Adds slope * bias to the scores of keys first .. first + n - 1. */
FUNC void attention_bias(PRIVATE float *score, PRIVATE const struct attention_kept *my,
                         int row, GLOBAL const u8 *bias, i64 first, int n,
                         ARGS(struct attention_args) a)
{
    float b[ATTENTION_SPAN] = { 0.0f };
    if (!a.bias_type)
        for (int i = 0; i < ATTENTION_SPAN; i++) {
            const i64 ahead = first + i - my->row[row].position;
            b[i] = -(float)(ahead < 0 ? -ahead : ahead);
        }
    else if (n == ATTENTION_SPAN)
        load_floats(b, bias + my->bias[row], a.bias_type, first, ATTENTION_SPAN);
    else
        load_floats(b, bias + my->bias[row], a.bias_type, first, n);
    for (int i = 0; i < ATTENTION_SPAN; i++)
        score[i] += b[i] == NEG_INFINITY ? b[i] : my->slope[row] * b[i];
}

/* Turns the products with the tile's keys t0 .. t0 + keys - 1 into scores: -inf if the row
 * does not see a key. */
LOCAL_FUNC void attention_scores(PRIVATE const struct attention_kept *my,
                                 LOCAL float *score, GLOBAL const u8 *bias, i64 t0,
                                 int keys, ARGS(struct attention_args) a,
                                 struct attention_group g, int lid)
{
    for (int n = 0; ATTENTION_IS_ROW(n); n++)
        for (int t = lid % LANES * ATTENTION_SPAN; t < ATTENTION_KEYS;
             t += LANES * ATTENTION_SPAN) {
            LOCAL float *at = score + ATTENTION_ROW(n) * ATTENTION_KEYS + t;
            float s[ATTENTION_SPAN];
            for (int i = 0; i < ATTENTION_SPAN; i++)
                s[i] = t + i < keys ? at[i] : 0.0f;
            if (a.softcap > 0.0f)
                for (int i = 0; i < ATTENTION_SPAN; i++)
                    s[i] = a.softcap * tanh_f32(s[i] / a.softcap);
            if (t < keys && (a.bias_type || a.has_slopes))
                attention_bias(s, my, n, bias, t0 + t,
                               keys - t < ATTENTION_SPAN ? keys - t : ATTENTION_SPAN, a);
            for (int i = 0; i < ATTENTION_SPAN; i++) {
                const i64 key = t0 + t + i;
                const int seen = key >= my->row[n].first && key < my->row[n].end;
                at[i] = seen ? s[i] : NEG_INFINITY;
            }
        }
}

/* grown[n] = the largest score so far, including those of this tile. */
LOCAL_FUNC void attention_grow(PRIVATE const struct attention_kept *my,
                               PRIVATE float *grown, LOCAL const float *score,
                               struct attention_group g, int lid)
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
LOCAL_FUNC void attention_rescale(PRIVATE struct attention_kept *my,
                                  PRIVATE const float *grown, LOCAL float *score,
                                  struct attention_group g, int lid)
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

/* Adds the values of a tile, elements from `first` on, weighted by the exponentials; the
 * first time, also their sum. */
LOCAL_FUNC void attention_gather(PRIVATE struct attention_kept *my,
                                 LOCAL const float *score, LOCAL const float *tile, i64 t0,
                                 int keys, int first, struct attention_group g, int lid)
{
    for (int n = 0; ATTENTION_IS_ROW(n); n++) {
        LOCAL const float *p = score + ATTENTION_ROW(n) * ATTENTION_KEYS;
        const int from = my->row[n].first > t0 ? (int)(my->row[n].first - t0) : 0;
        const int to = my->row[n].end - t0 < keys ? (int)(my->row[n].end - t0) : keys;
        float weights[ATTENTION_KEYS]; /* 0 for keys that the row does not see */
        for (int t = 0; t < ATTENTION_KEYS; t++)
            weights[t] = p[t];
        my->sum[n] += first > 0 ? 0.0f : sum_of(weights, ATTENTION_KEYS);
        attention_add(my->out[n] + first / LANES, p, tile, from, to,
                      attention_part(g.value_dim, first), lid % LANES);
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
 GLOBAL const u8 *bias, GLOBAL const u8 *slopes, GLOBAL const u8 *sinks,
 GLOBAL const u8 *lengths, ARGS(struct attention_args) a GRID)
{
    SHARED float query[ATTENTION_ROWS * ATTENTION_PART];
    SHARED float tile[ATTENTION_KEYS * ATTENTION_PITCH];
    SHARED float score[ATTENTION_ROWS * ATTENTION_KEYS];
    struct attention_kept my;
    const int lid = local_id();
    const struct attention_group g = attention_group_of(a, lengths, group_id());

    y += a.y.offset + g.batch * a.y.stride[0];
    q += a.q.offset + g.batch * a.q.stride[0];
    k += a.k.offset + g.batch * a.k.stride[0] + g.kv_head * a.k.stride[2];
    v += a.v.offset + g.batch * a.v.stride[0] + g.kv_head * a.v.stride[2];

    attention_begin(&my, slopes, sinks, a, g, lid);
    const i64 start = attention_row_of(a, g, 0).first;
    const i64 end = attention_row_of(a, g, g.rows - 1).end;
    for (i64 t0 = start; t0 < end; t0 += ATTENTION_KEYS) {
        const int keys = end - t0 < ATTENTION_KEYS ? (int)(end - t0) : ATTENTION_KEYS;
        float grown[ATTENTION_KEPT];
        for (int d = 0; d < g.dim; d += ATTENTION_PART) {
            if (t0 == start || g.dim > ATTENTION_PART) /* one part stays */
                attention_query(&my, query, q, d, a, g, lid);
            load_tile(tile, ATTENTION_PITCH, 1, keys, attention_part(g.dim, d),
                      k + t0 * a.k.stride[1], a.k.stride[1], a.k_type, d, keys,
                      a.head_dim - d, lid);
            BARRIER();
            attention_multiply(score, query, tile, d, keys, g, lid);
            if (d + ATTENTION_PART >= g.dim)
                attention_scores(&my, score, bias, t0, keys, a, g, lid);
            BARRIER();
        }
        attention_grow(&my, grown, score, g, lid);
        BARRIER();
        attention_rescale(&my, grown, score, g, lid);
        for (int d = 0; d < g.value_dim; d += ATTENTION_PART) {
            load_tile(tile, ATTENTION_PITCH, 1, keys, attention_part(g.value_dim, d),
                      v + t0 * a.v.stride[1], a.v.stride[1], a.v_type, d, keys,
                      a.value_dim - d, lid);
            BARRIER();
            attention_gather(&my, score, tile, t0, keys, d, g, lid);
            BARRIER();
        }
    }
    attention_store(&my, y, a, g, lid);
}
