/* SPDX-License-Identifier: MIT */
/* y = silu(gate) * up: one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(swiglu)
(GLOBAL u8 *y, GLOBAL const u8 *gate, GLOBAL const u8 *up, ARGS(struct swiglu_args) a GRID)
{
    const i64 spans = (a.cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN;
    const struct index at = index_of(group_id() / spans, a.n1, a.n2);
    const i64 first = group_id() % spans * ELEMENT_SPAN;
    const i64 end = a.cols < first + ELEMENT_SPAN ? a.cols : first + ELEMENT_SPAN;

    gate += row_at(a.gate, at);
    up += row_at(a.up, at);
    y += row_at(a.y, at);
    for (i64 i = first + local_id(); i < end; i += GROUP) {
        const float v = load(X, gate, i);
        store(X, y, i, v / (1.0f + exp_f32(-v)) * load(X, up, i));
    }
}
