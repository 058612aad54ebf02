/* SPDX-License-Identifier: MIT */
/* y = x * weight / sqrt(mean(x^2) + eps): one group per row. */

/* The sum of (unit * x)^2 over a row. */
LOCAL_FUNC float rmsnorm_sum(GLOBAL const u8 *x, i64 cols, float unit, LOCAL float *scratch,
                             int lid)
{
    float part[PIECE];
    for (int j = 0; j < PIECE; j++)
        part[j] = 0.0f;
    i64 i = (i64)lid * PIECE;
    for (; i + PIECE <= cols; i += GROUP * PIECE)
        for (int j = 0; j < PIECE; j++) {
            const float v = unit * load(ACT, x, i + j);
            part[j] += v * v;
        }
    for (; i < cols; i++) {
        const float v = unit * load(ACT, x, i);
        part[0] += v * v;
    }
    return group_sum(sum_of(part, PIECE), scratch, lid);
}

KERNEL(rmsnorm)
(GLOBAL u8 *y, GLOBAL const u8 *x, GLOBAL const u8 *weight,
 ARGS(struct rmsnorm_args) a GRID)
{
    SHARED float scratch[GROUP];
    const int lid = local_id();
    const struct index at = index_of(group_id(), a.n1, a.n2);

    x += row_at(a.x, at);
    y += row_at(a.y, at);
    if (a.has_weight)
        weight += a.weight_offset;

    /* Squares of huge values overflow and those of tiny ones vanish: then the sum is
     * computed again, in another unit. */
    float unit = 1.0f, sum = rmsnorm_sum(x, a.cols, unit, scratch, lid);
    if (!(sum < 1e37f) || sum < 1e-30f) {
        unit = sum < 1.0f ? 1.099511627776e12f : 8.271806125530277e-25f;
        sum = rmsnorm_sum(x, a.cols, unit, scratch, lid);
    }
    const float mean = sum / (float)a.cols;
    const float scale = 1.0f / sqrt_f32(mean + a.eps * unit * unit);
    if (a.has_weight) {
        for (i64 i = lid; i < a.cols; i += GROUP)
            store(ACT, y, i, unit * load(ACT, x, i) * scale * load(WGT, weight, i));
    } else {
        for (i64 i = lid; i < a.cols; i += GROUP)
            store(ACT, y, i, unit * load(ACT, x, i) * scale);
    }
}
