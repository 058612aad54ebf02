/* SPDX-License-Identifier: MIT */
/* y = a + b, b or both possibly one value a row: one group per ELEMENT_SPAN neighbours of a
 * row. */
KERNEL(add)
(GLOBAL u8 *y, GLOBAL const u8 *a, GLOBAL const u8 *b, ARGS(struct binary_args) s GRID)
{
    const i64 spans = (s.cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN;
    const struct index at = index_of(group_id() / spans, s.n1, s.n2);
    const i64 first = group_id() % spans * ELEMENT_SPAN;
    const i64 end = s.cols < first + ELEMENT_SPAN ? s.cols : first + ELEMENT_SPAN;

    a += row_at(s.a, at);
    b += row_at(s.b, at);
    y += row_at(s.y, at);
    if (s.b_step) {
        for (i64 i = first + local_id(); i < end; i += GROUP)
            store(X, y, i, load(X, a, i) + load(X, b, i));
    } else if (s.flat) {
        const float same = load(X, a, 0) + load(X, b, 0);
        for (i64 i = first + local_id(); i < end; i += GROUP)
            store(X, y, i, same);
    } else {
        const float same = load(X, b, 0);
        for (i64 i = first + local_id(); i < end; i += GROUP)
            store(X, y, i, load(X, a, i) + same);
    }
}
