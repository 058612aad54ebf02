/* SPDX-License-Identifier: MIT */
/* A part of attention with few queries: one group per part of the keys and head of k, for all ROWS
 * rows that read it. A row is one query of one head. attention_merge.cl puts the parts together.
 *
 * GROUP keys at a time, as in attention_rows.cl: each work-item multiplies one key with the queries
 * of all rows; then it adds four elements of the values of some keys to all rows. A part has as many
 * keys as make at most MOST_PARTS parts, in multiples of GROUP; a part that has none is left at once,
 * and what it has in the workspace is not read.
 *
 * The plan defines ROWS, KV_TYPE and MOST_PARTS. It takes care that heads are whole, aligned vectors
 * of four, of at most MOST_DIM elements, and that there are no biases, slopes and sinks. */
#define MOST_DIM 256
#define SHARE    (GROUP / ROWS)

/* The sum, or the largest, of each run of SHARE work-items. */
#define RUN(scratch, v, together)                                                          \
    scratch[lid] = v;                                                                      \
    BARRIER();                                                                             \
    for (int span = SHARE / 2; span > 0; span /= 2) {                                      \
        if (lane < span)                                                                   \
            scratch[lid] = together(scratch[lid], scratch[lid + span]);                    \
        BARRIER();                                                                         \
    }                                                                                      \
    v = scratch[lid - lane];                                                               \
    BARRIER();
#define ADD(x, y) ((x) + (y))

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(attention_split)
(GLOBAL u8 *y, GLOBAL const u8 *q, GLOBAL const u8 *k, GLOBAL const u8 *v,
 GLOBAL const u8 *bias, GLOBAL const u8 *slopes, GLOBAL const u8 *sinks,
 GLOBAL const u8 *lengths, ARGS(struct attention_args) a, GLOBAL float *parts)
{
    SHARED float4 query[ROWS][MOST_DIM / 4], values[GROUP];
    SHARED float weight[ROWS][GROUP], scratch[GROUP], factor[ROWS];
    const int lid = local_id(), mine = lid / SHARE, lane = lid % SHARE;
    const i64 heads = a.heads / a.kv_heads, all = a.queries * heads;
    const i64 most = part_count(a.keys_max);
    const struct index at = index_of(group_id(), a.kv_heads, most);
    const i64 length = length_of(a, lengths, at.i0);
    const struct keys part = keys_of_part(length, at.i2);
    const struct keys seen = keys_seen(a, length, (mine < all ? mine : all - 1) / heads);
    const int fours = a.value_dim / 4, slices = GROUP / fours;
    const int slice = lid / fours, four = lid % fours;
    float top = NEG_INFINITY, sum = 0.0f;
    float4 out[ROWS];

    /* of these, what some row sees */
    const i64 first_seen = keys_seen(a, length, 0).first;
    const i64 begin = first_seen > part.first ? first_seen : part.first;
    const i64 last_seen = keys_seen(a, length, (all - 1) / heads).end;
    const i64 end = last_seen < part.end ? last_seen : part.end;

    if (part.first >= part.end)
        return;
    q += a.q.offset + at.i0 * a.q.stride[0];
    k += a.k.offset + at.i0 * a.k.stride[0] + at.i1 * a.k.stride[2];
    v += a.v.offset + at.i0 * a.v.stride[0] + at.i1 * a.v.stride[2];

    for (int r = 0; r < ROWS; r++) {
        const i64 row = r < all ? r : all - 1;
        GLOBAL const u8 *from = q + row / heads * a.q.stride[1] +
                                (at.i1 * heads + row % heads) * a.q.stride[2];
        for (int d = lid; d < a.head_dim; d += GROUP)
            ((LOCAL float *)query[r])[d] = a.scale * load_any(from, a.q_type, d);
        out[r] = (float4)(0.0f);
    }
    BARRIER();
    for (i64 t0 = begin; t0 < end; t0 += GROUP) {
        const int keys = end - t0 < GROUP ? (int)(end - t0) : GROUP;
        if (lid < keys) {
            GLOBAL const u8 *key = k + (t0 + lid) * a.k.stride[1];
            float4 dot[ROWS];
            for (int r = 0; r < ROWS; r++)
                dot[r] = (float4)(0.0f);
#pragma unroll 8
            for (int d = 0; d < a.head_dim / 4; d++) {
                const float4 of_key = FOUR(KV_TYPE)(key, 4 * d);
                for (int r = 0; r < ROWS; r++)
                    dot[r] += query[r][d] * of_key;
            }
            for (int r = 0; r < ROWS; r++) {
                const float score = dot[r].x + dot[r].y + (dot[r].z + dot[r].w);
                weight[r][lid] = a.softcap > 0.0f ? a.softcap * tanh_f32(score / a.softcap)
                                                  : score;
            }
        }
        BARRIER();

        const int first = seen.first > t0 ? (int)(seen.first - t0) : 0;
        const int last = seen.end - t0 < keys ? (int)(seen.end - t0) : keys;
        float largest = top;
        for (int t = lane; t < keys; t += SHARE)
            if (t >= first && t < last)
                largest = max_f32(largest, weight[mine][t]);
        RUN(scratch, largest, max_f32)
        const float from = largest == NEG_INFINITY ? 0.0f : largest;
        const float shrink = exp_f32(top - from);
        top = largest;
        sum *= shrink;
        for (int t = lane; t < keys; t += SHARE) {
            const float w = t >= first && t < last ? exp_f32(weight[mine][t] - from) : 0.0f;
            weight[mine][t] = w;
            sum += w;
        }
        if (lane == 0)
            factor[mine] = shrink;
        BARRIER();

        for (int r = 0; r < ROWS; r++)
            out[r] *= factor[r];
        if (slice < slices) {
#pragma unroll 4
            for (int t = slice; t < keys; t += slices) {
                const float4 of_value = FOUR(KV_TYPE)(v + (t0 + t) * a.v.stride[1], 4 * four);
                for (int r = 0; r < ROWS; r++)
                    if (weight[r][t] != 0.0f) /* what a row does not see may be anything */
                        out[r] += weight[r][t] * of_value;
            }
        }
        BARRIER();
    }

    RUN(scratch, sum, ADD)
    const i64 row0 = (at.i0 * a.kv_heads + at.i1) * all;
    GLOBAL float *sums = parts + ((i64)get_num_groups(0) / most * all) * most * a.value_dim;
    if (lane == 0 && mine < all) {
        const i64 place = ((row0 + mine) * most + at.i2) * 2;
        sums[place] = top;
        sums[place + 1] = sum;
    }
    for (int r = 0; r < ROWS && r < all; r++) {
        values[lid] = out[r];
        BARRIER();
        if (slice == 0) {
            float4 whole = values[lid];
            for (int s = 1; s < slices; s++)
                whole += values[s * fours + lid];
            vstore4(whole, four, parts + ((row0 + r) * most + at.i2) * a.value_dim);
        }
        BARRIER();
    }
}
