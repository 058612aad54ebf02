/* SPDX-License-Identifier: MIT */
/* y = x / (1 + e^-x): one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(silu)(GLOBAL u8 *y, GLOBAL const u8 *x, ARGS(struct silu_args) a GRID)
{
    const struct span s = span_of(group_id(), a.n1, a.n2, a.cols);

    x += row_at(a.x, s.at);
    y += row_at(a.y, s.at);
    for (i64 i = s.first + local_id(); i < s.end; i += GROUP) {
        const float v = load(ACT, x, i);
        store(ACT, y, i, v / (1.0f + exp_f32(-v)));
    }
}
