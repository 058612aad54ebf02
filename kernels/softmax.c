/* SPDX-License-Identifier: MIT */
/* y = exp(t - max t) / sum, or its logarithm, t = scale * x + mask: one group per row. */

/* A row's t. A mask that is one value a row comes in `flat`, and `mask` is not read. */
struct softmax_row {
    float scale, flat;
    int masked;
};

FUNC float softmax_score(struct softmax_row r, GLOBAL const u8 *x, GLOBAL const u8 *mask,
                         i64 i)
{
    return r.scale * load(X, x, i) + (r.masked ? load(W, mask, i) : r.flat);
}

KERNEL(softmax)(GLOBAL u8 *y, GLOBAL const u8 *x, GLOBAL const u8 *mask,
                ARGS(struct softmax_args) a GRID)
{
    SHARED float scratch[GROUP];
    const int lid = local_id();
    const struct index at = index_of(group_id(), a.n1, a.n2);

    x += row_at(a.x, at);
    y += row_at(a.y, at);
    if (a.has_mask)
        mask += row_at(a.mask, at);
    struct softmax_row r;
    r.scale = a.scale;
    r.masked = a.has_mask && a.mask_step;
    r.flat = a.has_mask && !a.mask_step ? load(W, mask, 0) : 0.0f;

    float best[PIECE];
    for (int j = 0; j < PIECE; j++)
        best[j] = NEG_INFINITY;
    i64 i = (i64)lid * PIECE;
    for (; i + PIECE <= a.cols; i += GROUP * PIECE)
        for (int j = 0; j < PIECE; j++)
            best[j] = max_f32(softmax_score(r, x, mask, i + j), best[j]);
    for (; i < a.cols; i++)
        best[0] = max_f32(softmax_score(r, x, mask, i), best[0]);
    for (int j = 1; j < PIECE; j++)
        best[0] = max_f32(best[j], best[0]);
    float top = group_max(best[0], scratch, lid);
    top = top == NEG_INFINITY ? 0.0f
                              : top; /* -inf - -inf is NaN; every exp is 0 all the same */

    float sum = 0.0f;
    for (i = lid; i < a.cols; i += GROUP)
        sum += exp_f32(add_exact(softmax_score(r, x, mask, i), -top));
    sum = group_sum(sum, scratch, lid);

    if (a.log_form) {
        const float log_sum = sum > 0.0f ? log_f32(sum) : sum; /* a NaN stays one */
        for (i = lid; i < a.cols; i += GROUP)
            store(X, y, i,
                  add_exact(add_exact(softmax_score(r, x, mask, i), -top), -log_sum));
    } else {
        const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (i = lid; i < a.cols; i += GROUP)
            store(X, y, i, exp_f32(add_exact(softmax_score(r, x, mask, i), -top)) * scale);
    }
}
