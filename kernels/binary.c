/* SPDX-License-Identifier: MIT */
/* y = a + b, a * b, a - b or a / b, for inputs of any float types that may repeat: one group
 * per ELEMENT_SPAN neighbours of a row. */
FUNC struct index binary_index(struct index at, struct period period)
{
    at.i0 %= period.outer[0];
    at.i1 %= period.outer[1];
    at.i2 %= period.outer[2];
    return at;
}

/* Loads elements first .. first + n - 1 of a row that repeats after `cols` elements. */
FUNC void binary_load(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first, int n,
                      i64 cols)
{
    if (cols == 1) {
        load_floats(to, row, type, 0, 1);
        for (int i = 1; i < n; i++)
            to[i] = to[0];
        return;
    }
    for (int done = 0, count; done < n; done += count) {
        const i64 at = (first + done) % cols;
        count = cols - at < n - done ? (int)(cols - at) : n - done;
        load_floats(to + done, row, type, at, count);
    }
}

/* a = a op b */
FUNC void binary_combine(PRIVATE float *a, PRIVATE const float *b, int kind, int n)
{
    switch (kind) {
    case BINARY_ADD:
        for (int i = 0; i < n; i++)
            a[i] += b[i];
        break;
    case BINARY_MUL:
        for (int i = 0; i < n; i++)
            a[i] *= b[i];
        break;
    case BINARY_SUB:
        for (int i = 0; i < n; i++)
            a[i] -= b[i];
        break;
    case BINARY_DIV:
        for (int i = 0; i < n; i++)
            a[i] /= b[i];
        break;
    }
}

KERNEL(binary)
(GLOBAL u8 *y, GLOBAL const u8 *a, GLOBAL const u8 *b,
 ARGS(struct mixed_binary_args) s GRID)
{
    const struct span r = span_of(group_id(), s.n1, s.n2, s.cols);

    a += row_at(s.a, binary_index(r.at, s.a_period));
    b += row_at(s.b, binary_index(r.at, s.b_period));
    y += row_at(s.y, r.at);
    for (i64 i = r.first + local_id() * PIECE; i < r.end; i += GROUP * PIECE) {
        const int n = r.end - i < PIECE ? (int)(r.end - i) : PIECE;
        float u[PIECE], v[PIECE];
        binary_load(u, a, s.a_type, i, n, s.a_period.cols);
        binary_load(v, b, s.b_type, i, n, s.b_period.cols);
        binary_combine(u, v, s.kind, n);
        store_piece(y, s.y_type, i, u, n);
    }
}
