/* SPDX-License-Identifier: MIT */
/* table[rows[i],:] = x[i,:], unless the table has no such row: one group per row i. */
KERNEL(set_rows)
(GLOBAL u8 *table, GLOBAL const u8 *x, GLOBAL const u8 *rows, ARGS(struct rows_args) a GRID)
{
    const struct index at = index_of(group_id(), a.batch1, a.count);
    const i64 row = row_number(rows, a, at);

    if (row < 0 || row >= a.table_rows)
        return;
    struct index in = at;
    in.i2 = row;
    table += row_at(a.to, in);
    x += row_at(a.from, at);
    convert_row(table, a.to_type, x, a.from_type, 0, a.cols, local_id());
}
