/* SPDX-License-Identifier: MIT */
/* y = exp(t - max) / sum, or its logarithm, t = scale * x + slope * mask: one group per row. A
 * sink is one more t, which counts in max and sum. */

/* How the t of a row are computed. If the mask is one value per row, it is in `flat`. */
struct softmax_row {
    float scale, slope, flat;
    int mask_type;
};

/* slope * mask; -inf stays what it is. */
FUNC float softmax_masked(float slope, float mask)
{
    return mask == NEG_INFINITY ? mask : slope * mask;
}

FUNC void softmax_few(PRIVATE float *t, struct softmax_row r, GLOBAL const u8 *x,
                      GLOBAL const u8 *mask, i64 first, int n)
{
    for (int j = 0; j < n; j++)
        t[j] = r.scale * load(ACT, x, first + j) + r.flat;
    if (r.mask_type == STORAGE_F32)
        for (int j = 0; j < n; j++)
            t[j] += softmax_masked(r.slope, load_f32(mask, first + j));
    else if (r.mask_type == STORAGE_F16)
        for (int j = 0; j < n; j++)
            t[j] += softmax_masked(r.slope, load_f16(mask, first + j));
    else if (r.mask_type == STORAGE_BF16)
        for (int j = 0; j < n; j++)
            t[j] += softmax_masked(r.slope, load_bf16(mask, first + j));
}

/* t of PIECE elements. Beyond the last element it is -inf, which changes neither the maximum
 * nor the sum. */
FUNC void softmax_piece(PRIVATE float *t, struct softmax_row r, GLOBAL const u8 *x,
                        GLOBAL const u8 *mask, i64 first, i64 cols)
{
    if (cols - first >= PIECE) {
        softmax_few(t, r, x, mask, first, PIECE);
    } else {
        for (int j = 0; j < PIECE; j++)
            t[j] = NEG_INFINITY;
        softmax_few(t, r, x, mask, first, (int)(cols - first));
    }
}

KERNEL(softmax)
(GLOBAL u8 *y, GLOBAL const u8 *x, GLOBAL const u8 *mask, GLOBAL const u8 *slopes,
 GLOBAL const u8 *sinks, ARGS(struct softmax_args) a GRID)
{
    SHARED float scratch[GROUP];
    const int lid = local_id();
    const struct index at = index_of(group_id(), a.n1, a.n2);

    x += row_at(a.x, at);
    y += row_at(a.y, at);
    struct softmax_row r;
    r.scale = a.scale;
    r.slope = a.has_slopes ? load_f32(slopes + a.slopes_offset, at.i1) : 1.0f;
    r.mask_type = a.mask_step ? a.mask_type : 0;
    r.flat = 0.0f;
    if (a.mask_type)
        mask += repeated_row_at(a.mask, a.mask_extents, at);
    if (a.mask_type && !a.mask_step) {
        load_floats(&r.flat, mask, a.mask_type, 0, 1);
        r.flat = softmax_masked(r.slope, r.flat);
    }
    const float sink = a.has_sinks ? load_f32(sinks + a.sinks_offset, at.i1) : NEG_INFINITY;

    float t[PIECE], best[PIECE], part[PIECE];
    for (int j = 0; j < PIECE; j++)
        best[j] = NEG_INFINITY;
    for (int j = 0; j < PIECE; j++)
        part[j] = 0.0f;
    for (i64 i = (i64)lid * PIECE; i < a.cols; i += GROUP * PIECE) {
        softmax_piece(t, r, x, mask, i, a.cols);
        for (int j = 0; j < PIECE; j++)
            best[j] = max_f32(t[j], best[j]);
    }
    float top = max_f32(sink, group_max(max_of(best, PIECE), scratch, lid));
    /* -inf - -inf would be NaN; with 0 every exp is 0, as required. */
    top = top == NEG_INFINITY ? 0.0f : top;

    for (i64 i = (i64)lid * PIECE; i < a.cols; i += GROUP * PIECE) {
        softmax_piece(t, r, x, mask, i, a.cols);
        for (int j = 0; j < PIECE; j++)
            part[j] += exp_f32(t[j] - top);
    }
    const float sum = group_sum(sum_of(part, PIECE), scratch, lid) +
                      (a.has_sinks ? exp_f32(sink - top) : 0.0f);

    const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
    const float log_sum = sum > 0.0f ? log_f32(sum) : sum; /* a NaN stays one */
    for (i64 i = (i64)lid * PIECE; i < a.cols; i += GROUP * PIECE) {
        const int n = a.cols - i < PIECE ? (int)(a.cols - i) : PIECE;
        softmax_piece(t, r, x, mask, i, a.cols);
        if (a.log_form)
            for (int j = 0; j < PIECE; j++)
                t[j] = t[j] - top - log_sum;
        else
            for (int j = 0; j < PIECE; j++)
                t[j] = exp_f32(t[j] - top) * scale;
        for (int j = 0; j < n; j++)
            store(ACT, y, i + j, t[j]);
    }
}
