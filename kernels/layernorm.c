/* SPDX-License-Identifier: MIT */
/* y = (x - mean) / sqrt(variance + eps) * weight + bias: one group per row.
 *
 * A sum in float gives only an estimate of the mean. The deviations d from it are small, and
 * exact where the mean is large beside them; their own mean corrects the result, and
 * variance = mean(d^2) - mean(d)^2 (Chan, Golub and LeVeque, 1983). */
struct layernorm_sums {
    float d, squares;
};

/* The sums of d and d^2 over a row, d = unit * x - mean. */
LOCAL_FUNC struct layernorm_sums layernorm_sum(GLOBAL const u8 *x, i64 cols, float mean,
                                               float unit, LOCAL float *scratch, int lid)
{
    float part[PIECE], squares[PIECE];
    struct layernorm_sums s;
    for (int j = 0; j < PIECE; j++)
        part[j] = 0.0f;
    for (int j = 0; j < PIECE; j++)
        squares[j] = 0.0f;
    i64 i = (i64)lid * PIECE;
    for (; i + PIECE <= cols; i += GROUP * PIECE)
        for (int j = 0; j < PIECE; j++) {
            const float d = unit * load(ACT, x, i + j) - mean;
            part[j] += d;
            squares[j] += d * d;
        }
    for (; i < cols; i++) {
        const float d = unit * load(ACT, x, i) - mean;
        part[0] += d;
        squares[0] += d * d;
    }
    s.d = group_sum(sum_of(part, PIECE), scratch, lid);
    s.squares = group_sum(sum_of(squares, PIECE), scratch, lid);
    return s;
}

KERNEL(layernorm)
(GLOBAL u8 *y, GLOBAL const u8 *x, GLOBAL const u8 *weight, GLOBAL const u8 *bias,
 ARGS(struct layernorm_args) a GRID)
{
    SHARED float scratch[GROUP];
    const int lid = local_id();
    const struct index at = index_of(group_id(), a.n1, a.n2);

    x += row_at(a.x, at);
    y += row_at(a.y, at);
    if (a.has_weight)
        weight += a.weight_offset;
    if (a.has_bias)
        bias += a.bias_offset;

    /* Squares of huge values overflow and those of tiny deviations vanish: then the sums are
     * computed again, in another unit. */
    float unit = 1.0f;
    struct layernorm_sums s = layernorm_sum(x, a.cols, 0.0f, unit, scratch, lid);
    if (!(s.squares < 1e37f)) {
        unit = 8.271806125530277e-25f;
        s = layernorm_sum(x, a.cols, 0.0f, unit, scratch, lid);
    }
    float mean = s.d / (float)a.cols;
    s = layernorm_sum(x, a.cols, mean, unit, scratch, lid);
    if (s.squares < 1e-30f) {
        unit *= 1.099511627776e12f;
        mean *= 1.099511627776e12f;
        s = layernorm_sum(x, a.cols, mean, unit, scratch, lid);
    }
    const float rest = s.d / (float)a.cols;
    /* Where all elements are equal, and eps vanishes beside them, this is what rounding left. */
    const float squares = s.squares / (float)a.cols, variance = squares - rest * rest,
                least = squares * 5.9604644775390625e-08f;
    const float scale =
        1.0f / sqrt_f32((variance < least ? least : variance) + a.eps * unit * unit);
    for (i64 i = lid; i < a.cols; i += GROUP) {
        float v = (unit * load(ACT, x, i) - mean - rest) * scale;
        if (a.has_weight)
            v *= load(WGT, weight, i);
        if (a.has_bias)
            v += load(WGT, bias, i);
        store(ACT, y, i, v);
    }
}
