/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T, masked) . v for floats: one group per ROWS rows that read the same head
 * of k and v. A row is one query of one head.
 *
 * GROUP keys at a time: each work-item multiplies one key with the queries of all rows, which lie in
 * group memory; SHARE work-items turn a row's products into weights; then each work-item adds four
 * elements of the values of some keys to all rows. k and v are read from global memory once for
 * ROWS rows. The softmax is online: what a row has is rescaled whenever its largest score grows.
 * On an H200 it takes a tenth of the portable kernel's time for one query, and a third of it for 256
 * (docs/opencl.md).
 *
 * The plan defines ROWS, KV_TYPE and GROUP. It takes care that heads are whole, aligned vectors of
 * four, of at most MOST_DIM elements, and that there are no biases, slopes and sinks. */
#define MOST_DIM 256
#define SHARE    (GROUP / ROWS)

/* The largest `v` of each run of SHARE work-items. */
LOCAL_FUNC float run_max(float v, LOCAL float *scratch, int lid)
{
    scratch[lid] = v;
    BARRIER();
    for (int span = SHARE / 2; span > 0; span /= 2) {
        if (lid % SHARE < span)
            scratch[lid] = max_f32(scratch[lid], scratch[lid + span]);
        BARRIER();
    }
    return scratch[lid / SHARE * SHARE];
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(attention_rows)
(GLOBAL u8 *y, GLOBAL const u8 *q, GLOBAL const u8 *k, GLOBAL const u8 *v,
 GLOBAL const u8 *bias, GLOBAL const u8 *slopes, GLOBAL const u8 *sinks,
 GLOBAL const u8 *lengths, ARGS(struct attention_args) a GRID)
{
    SHARED float4 query[ROWS][MOST_DIM / 4], part[GROUP];
    SHARED float weight[ROWS][GROUP], scratch[GROUP], factor[ROWS];
    const int lid = local_id(), mine = lid / SHARE, lane = lid % SHARE;
    const i64 heads = a.heads / a.kv_heads, all = a.queries * heads;
    const struct index at = index_of(group_id(), a.kv_heads, (all + ROWS - 1) / ROWS);
    const i64 row0 = at.i2 * ROWS, row_last = all - row0 < ROWS ? all - 1 : row0 + ROWS - 1;
    const i64 length = length_of(a, lengths, at.i0);
    const struct keys seen = keys_seen(a, length, (row0 + mine) / heads);
    const i64 end = keys_seen(a, length, row_last / heads).end;
    const int fours = a.value_dim / 4, slices = GROUP / fours;
    const int slice = lid / fours, four = lid % fours;
    float top = NEG_INFINITY, sum = 0.0f;
    float4 out[ROWS];

    y += a.y.offset + at.i0 * a.y.stride[0];
    q += a.q.offset + at.i0 * a.q.stride[0];
    k += a.k.offset + at.i0 * a.k.stride[0] + at.i1 * a.k.stride[2];
    v += a.v.offset + at.i0 * a.v.stride[0] + at.i1 * a.v.stride[2];

    for (int r = 0; r < ROWS; r++) {
        const i64 row = row0 + r < row_last ? row0 + r : row_last;
        GLOBAL const u8 *from = q + row / heads * a.q.stride[1] +
                                (at.i1 * heads + row % heads) * a.q.stride[2];
        for (int d = lid; d < a.head_dim; d += GROUP)
            ((LOCAL float *)query[r])[d] = a.scale * load_any(from, a.q_type, d);
        out[r] = (float4)(0.0f);
    }
    BARRIER();
    for (i64 t0 = keys_seen(a, length, row0 / heads).first; t0 < end; t0 += GROUP) {
        const int keys = end - t0 < GROUP ? (int)(end - t0) : GROUP;
        if (lid < keys) {
            GLOBAL const u8 *key = k + (t0 + lid) * a.k.stride[1];
            float4 dot[ROWS];
            for (int r = 0; r < ROWS; r++)
                dot[r] = (float4)(0.0f);
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
        float most = top;
        for (int t = lane; t < keys; t += SHARE)
            if (t >= first && t < last)
                most = max_f32(most, weight[mine][t]);
        most = run_max(most, scratch, lid);
        const float from = most == NEG_INFINITY ? 0.0f : most;
        const float shrink = exp_f32(top - from);
        top = most;
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
        if (slice < slices)
            for (int t = slice; t < keys; t += slices) {
                const float4 of_value = FOUR(KV_TYPE)(v + (t0 + t) * a.v.stride[1], 4 * four);
                for (int r = 0; r < ROWS; r++)
                    if (weight[r][t] != 0.0f) /* what a row does not see may be anything */
                        out[r] += weight[r][t] * of_value;
            }
        BARRIER();
    }

    sum = run_sum(sum, scratch, lid, SHARE);
    if (lane == 0)
        factor[mine] = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (i64 row = row0; row <= row_last; row++) {
        const int r = (int)(row - row0);
        part[lid] = out[r];
        BARRIER();
        if (slice == 0) {
            GLOBAL u8 *to = y + row / heads * a.y.stride[1] +
                            (at.i1 * heads + row % heads) * a.y.stride[2];
            float4 whole = part[lid];
            for (int s = 1; s < slices; s++)
                whole += part[s * fours + lid];
            whole *= factor[r];
            store_any(to, a.y_type, 4 * four, whole.x);
            store_any(to, a.y_type, 4 * four + 1, whole.y);
            store_any(to, a.y_type, 4 * four + 2, whole.z);
            store_any(to, a.y_type, 4 * four + 3, whole.w);
        }
        BARRIER();
    }
}
