/* SPDX-License-Identifier: MIT */
/* y = f(x): one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(activation)
(GLOBAL u8 *y, GLOBAL const u8 *x, ARGS(struct activation_args) a GRID)
{
    const struct span s = span_of(group_id(), a.n1, a.n2, a.cols);

    x += row_at(a.x, s.at);
    y += row_at(a.y, s.at);
    for (i64 i = s.first + local_id() * LONG_PIECE; i < s.end; i += GROUP * LONG_PIECE) {
        const int n = s.end - i < LONG_PIECE ? (int)(s.end - i) : LONG_PIECE;
        float v[LONG_PIECE];
        load_floats(v, x, a.type, i, n);
        activate(v, a.f, n);
        store_piece(y, a.type, i, v, n);
    }
}
