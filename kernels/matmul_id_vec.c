/* SPDX-License-Identifier: MIT */
/* c[t,u] = a[t,u] . b[e]^T + bias[e], e = ids[t,u], for few rows: one group per row and
 * MATMUL_VEC_COLS columns, with the dot products of matmul_vec. */
KERNEL(matmul_id_vec)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *ids,
 GLOBAL const u8 *bias, ARGS(struct matmul_id_args) s GRID)
{
    SHARED float ta[MATMUL_VEC_DEPTH], scratch[GROUP];
    vec sum[MATMUL_VEC_KEPT];
    const int lid = local_id(), lane = lid % LANES;
    const i64 across = (s.n + MATMUL_VEC_COLS - 1) / MATMUL_VEC_COLS;
    const struct index at = index_of(group_id(), s.used, across);
    const i64 col = at.i2 * MATMUL_VEC_COLS + lid / LANES, t = at.i0, u = at.i1;
    const i64 id = ((GLOBAL const int *)(ids + s.ids_offset + t * s.ids_stride))[u];
    const int known = id >= 0 && id < s.experts; /* or the row gets zeros */
    const i64 depth = known ? s.k : 0;

    a += s.a.offset + t * s.a.stride[1] + u * s.a.stride[2];
    c += s.c.offset + t * s.c.stride[1] + u * s.c.stride[2];
    if (known)
        b += s.b.offset + id * s.b.stride[1];
    if (known && s.bias_type)
        bias += s.bias_offset + id * s.bias_stride;

    for (int j = 0; j < MATMUL_VEC_KEPT; j++)
        sum[j] = vec_zero;
    for (i64 k = 0; k < depth; k += MATMUL_VEC_DEPTH) {
        const int n = depth - k < MATMUL_VEC_DEPTH ? (int)(depth - k) : MATMUL_VEC_DEPTH;
        load_tile(ta, MATMUL_VEC_DEPTH, 1, 1, MATMUL_VEC_DEPTH, a, 0, s.a_type, k, 1, n,
                  lid);
        BARRIER();
        for (int j = 0; j < MATMUL_VEC_KEPT; j++) {
            const i64 x = col + j * MATMUL_VEC_STEP;
            float tb[MATMUL_VEC_MINE];
            if (x >= s.n)
                continue;
            matmul_vec_load(tb, b + x * s.b.stride[2], s.b_type, k, n, lane);
            sum[j] += matmul_vec_dot(tb, ta, lane);
        }
        BARRIER();
    }
    for (int j = 0; j < MATMUL_VEC_KEPT; j++) {
        const i64 x = col + j * MATMUL_VEC_STEP;
        float v = run_sum(vec_sum(sum[j]), scratch, lid, LANES);
        if (lane == 0 && x < s.n) {
            if (known && s.bias_type)
                v += load_any(bias, s.bias_type, x);
            store_any(c, s.c_type, x, v);
        }
    }
}
