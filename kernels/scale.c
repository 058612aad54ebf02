/* SPDX-License-Identifier: MIT */
/* y = scale * x + bias: one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(scale)(GLOBAL u8 *y, GLOBAL const u8 *x, ARGS(struct scale_args) a GRID)
{
    const struct span s = span_of(group_id(), a.n1, a.n2, a.cols);

    x += row_at(a.x, s.at);
    y += row_at(a.y, s.at);
    for (i64 i = s.first + local_id(); i < s.end; i += GROUP)
        store(ACT, y, i, a.scale * load(ACT, x, i) + a.bias);
}
