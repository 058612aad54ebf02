/* SPDX-License-Identifier: MIT */
/* y = x / (1 + e^-x): one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(silu)(GLOBAL u8 *y, GLOBAL const u8 *x, ARGS(struct silu_args) a GRID)
{
    const i64 spans = (a.cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN;
    const struct index at = index_of(group_id() / spans, a.n1, a.n2);
    const i64 first = group_id() % spans * ELEMENT_SPAN;
    const i64 end = a.cols < first + ELEMENT_SPAN ? a.cols : first + ELEMENT_SPAN;

    x += row_at(a.x, at);
    y += row_at(a.y, at);
    for (i64 i = first + local_id(); i < end; i += GROUP) {
        const float v = load(X, x, i);
        store(X, y, i, v / (1.0f + exp_f32(-v)));
    }
}
