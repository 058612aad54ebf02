/* SPDX-License-Identifier: MIT */
/* table[rows[i],:] = x[i,:], unless the table has no such row: one group per row i. */
KERNEL(set_rows)
(GLOBAL u8 *table, GLOBAL const u8 *x, GLOBAL const u8 *rows, ARGS(struct rows_args) a GRID)
{
    const i64 row = ((GLOBAL const int *)(rows + a.rows_offset))[group_id()];

    if (row < 0 || row >= a.table_rows)
        return;
    table += a.to.offset + row * a.to.stride[2];
    x += a.from.offset + group_id() * a.from.stride[2];
    convert_row(table, a.to_type, x, a.from_type, 0, a.cols, local_id());
}
