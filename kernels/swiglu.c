/* SPDX-License-Identifier: MIT */
/* y = silu(gate) * up: one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(swiglu)
(GLOBAL u8 *y, GLOBAL const u8 *gate, GLOBAL const u8 *up, ARGS(struct swiglu_args) a GRID)
{
    const struct span s = span_of(group_id(), a.n1, a.n2, a.cols);

    gate += row_at(a.gate, s.at);
    up += row_at(a.up, s.at);
    y += row_at(a.y, s.at);
    for (i64 i = s.first + local_id(); i < s.end; i += GROUP) {
        const float v = load(ACT, gate, i);
        store(ACT, y, i, v / (1.0f + exp_f32(-v)) * load(ACT, up, i));
    }
}
