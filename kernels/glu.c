/* SPDX-License-Identifier: MIT */
/* y = f(gate) * up: one group per ELEMENT_SPAN neighbours of a row. */
KERNEL(glu)
(GLOBAL u8 *y, GLOBAL const u8 *gate, GLOBAL const u8 *up, ARGS(struct glu_args) a GRID)
{
    const struct span s = span_of(group_id(), a.n1, a.n2, a.cols);

    gate += row_at(a.gate, s.at);
    up += row_at(a.up, s.at);
    y += row_at(a.y, s.at);
    for (i64 i = s.first + local_id() * LONG_PIECE; i < s.end; i += GROUP * LONG_PIECE) {
        const int n = s.end - i < LONG_PIECE ? (int)(s.end - i) : LONG_PIECE;
        float v[LONG_PIECE], u[LONG_PIECE];
        load_floats(v, gate, a.type, i, n);
        load_floats(u, up, a.type, i, n);
        activate(v, a.f, n);
        for (int k = 0; k < n; k++)
            v[k] *= u[k];
        store_piece(y, a.type, i, v, n);
    }
}
