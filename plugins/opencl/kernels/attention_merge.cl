/* SPDX-License-Identifier: MIT */
/* The end of attention_split.cl: one group per row puts the parts of its keys together, each as it
 * counts beside the largest score of all. */

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(attention_merge)
(GLOBAL u8 *y, GLOBAL const u8 *q, GLOBAL const u8 *k, GLOBAL const u8 *v,
 GLOBAL const u8 *bias, GLOBAL const u8 *slopes, GLOBAL const u8 *sinks,
 GLOBAL const u8 *lengths, ARGS(struct attention_args) a, GLOBAL const float *parts)
{
    SHARED float tops[MOST_PARTS], sums[MOST_PARTS];
    const int lid = local_id();
    const i64 heads = a.heads / a.kv_heads, all = a.queries * heads;
    const i64 most = part_count(a.keys_max), rows = (i64)get_num_groups(0);
    const struct index at = index_of(group_id(), a.kv_heads, all);
    const i64 length = length_of(a, lengths, at.i0);
    const int used = parts_used(length);
    GLOBAL const float *mine = parts + (i64)group_id() * most * a.value_dim;
    GLOBAL const float *ends = parts + rows * most * a.value_dim + (i64)group_id() * most * 2;
    float top = NEG_INFINITY, sum = 0.0f;

    y += a.y.offset + at.i0 * a.y.stride[0] + at.i2 / heads * a.y.stride[1] +
         (at.i1 * heads + at.i2 % heads) * a.y.stride[2];
    for (int p = lid; p < used; p += GROUP) {
        tops[p] = ends[p * 2];
        sums[p] = ends[p * 2 + 1];
    }
    BARRIER();
    for (int p = 0; p < used; p++)
        top = max_f32(top, tops[p]);
    const float from = top == NEG_INFINITY ? 0.0f : top;
    for (int p = 0; p < used; p++)
        sum += sums[p] * exp_f32(tops[p] - from);
    const float whole = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int d = lid; d < a.value_dim; d += GROUP) {
        float out = 0.0f;
        for (int p = 0; p < used; p++) {
            const float share = exp_f32(tops[p] - from);
            if (share != 0.0f)
                out += share * mine[p * a.value_dim + d];
        }
        store_any(y, a.y_type, d, out * whole);
    }
}
