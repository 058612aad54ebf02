/* SPDX-License-Identifier: MIT */
/* residual += x, then y = residual * weight / sqrt(mean(residual^2) + eps): one group
 * per row. */

/* The sum of (unit * x)^2 over a row. */
LOCAL_FUNC float add_rmsnorm_sum(GLOBAL const u8 *x, i64 cols, float unit,
                                 LOCAL float *scratch, int lid)
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

KERNEL(add_rmsnorm)
(GLOBAL u8 *y, GLOBAL u8 *residual, GLOBAL const u8 *x, GLOBAL const u8 *weight,
 ARGS(struct add_rmsnorm_args) a GRID)
{
    SHARED float scratch[GROUP];
    const int lid = local_id();
    const struct index at = index_of(group_id(), a.n1, a.n2);

    residual += row_at(a.residual, at);
    x += row_at(a.x, at);
    y += row_at(a.y, at);
    if (a.has_weight)
        weight += a.weight_offset;

    /* Each work-item reads only what it stored itself, so no barrier is needed. */
    for (i64 i = lid; i < a.cols; i += GROUP)
        store(ACT, residual, i, load(ACT, residual, i) + load(ACT, x, i));

    float unit = 1.0f, sum = add_rmsnorm_sum(residual, a.cols, unit, scratch, lid);
    if (!(sum < 1e37f) || sum < 1e-30f) {
        unit = sum < 1.0f ? 1.099511627776e12f : 8.271806125530277e-25f;
        sum = add_rmsnorm_sum(residual, a.cols, unit, scratch, lid);
    }
    const float mean = sum / (float)a.cols;
    const float scale = 1.0f / sqrt_f32(mean + a.eps * unit * unit);
    if (a.has_weight) {
        for (i64 i = lid; i < a.cols; i += GROUP)
            store(ACT, y, i, unit * load(ACT, residual, i) * scale * load(WGT, weight, i));
    } else {
        for (i64 i = lid; i < a.cols; i += GROUP)
            store(ACT, y, i, unit * load(ACT, residual, i) * scale);
    }
}
