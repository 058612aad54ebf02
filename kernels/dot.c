/* SPDX-License-Identifier: MIT */
/* y = sum of a * b: one group per row. */
KERNEL(dot)
(GLOBAL u8 *y, GLOBAL const u8 *a, GLOBAL const u8 *b, ARGS(struct dot_args) s GRID)
{
    SHARED float scratch[GROUP];
    const int lid = local_id();
    const struct index at = index_of(group_id(), s.n1, s.n2);
    float part[PIECE];

    a += row_at(s.a, at);
    b += row_at(s.b, at);
    y += row_at(s.y, at);
    for (int j = 0; j < PIECE; j++)
        part[j] = 0.0f;
    for (i64 i = (i64)lid * PIECE; i < s.cols; i += GROUP * PIECE) {
        const int n = s.cols - i < PIECE ? (int)(s.cols - i) : PIECE;
        float u[PIECE] = { 0.0f }, v[PIECE] = { 0.0f };
        load_piece(u, a, s.a_type, i, n);
        load_piece(v, b, s.b_type, i, n);
        for (int j = 0; j < PIECE; j++)
            part[j] += u[j] * v[j];
    }
    const float sum = group_sum(sum_of(part, PIECE), scratch, lid);
    if (lid == 0)
        store_any(y, s.y_type, 0, sum);
}
