/* SPDX-License-Identifier: MIT */
/* y[i,:] = table[rows[i],:], or zeros if the table has no such row: one group per row i. */
KERNEL(get_rows)
(GLOBAL u8 *y, GLOBAL const u8 *table, GLOBAL const u8 *rows, ARGS(struct rows_args) a GRID)
{
    const int lid = local_id();
    const struct index at = index_of(group_id(), a.batch1, a.count);
    const i64 row = row_number(rows, a, at);

    y += row_at(a.to, at);
    if (row >= 0 && row < a.table_rows) {
        struct index in = at;
        in.i2 = row;
        table += repeated_row_at(a.from, a.from_extents, in);
        convert_row(y, a.to_type, table, a.from_type, 0, a.cols, lid);
    } else {
        for (i64 i = lid; i < a.cols; i += GROUP)
            store_any(y, a.to_type, i, 0.0f);
    }
}
