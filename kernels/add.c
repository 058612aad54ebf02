/* SPDX-License-Identifier: MIT */
/* y = a + b, where b, or both, may be one value per row: one group per ELEMENT_SPAN
 * neighbours of a row. */
KERNEL(add)
(GLOBAL u8 *y, GLOBAL const u8 *a, GLOBAL const u8 *b, ARGS(struct binary_args) s GRID)
{
    const struct span r = span_of(group_id(), s.n1, s.n2, s.cols);

    a += row_at(s.a, r.at);
    b += row_at(s.b, r.at);
    y += row_at(s.y, r.at);
    if (s.b_step) {
        for (i64 i = r.first + local_id(); i < r.end; i += GROUP)
            store(ACT, y, i, load(ACT, a, i) + load(ACT, b, i));
    } else if (s.flat) {
        const float same = load(ACT, a, 0) + load(ACT, b, 0);
        for (i64 i = r.first + local_id(); i < r.end; i += GROUP)
            store(ACT, y, i, same);
    } else {
        const float same = load(ACT, b, 0);
        for (i64 i = r.first + local_id(); i < r.end; i += GROUP)
            store(ACT, y, i, load(ACT, a, i) + same);
    }
}
