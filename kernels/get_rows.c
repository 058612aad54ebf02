/* SPDX-License-Identifier: MIT */
/* y[i,:] = table[rows[i],:], or zeros if the table has no such row: one group per row i. */
KERNEL(get_rows)
(GLOBAL u8 *y, GLOBAL const u8 *table, GLOBAL const u8 *rows, ARGS(struct rows_args) a GRID)
{
    const int lid = local_id();
    const i64 row = ((GLOBAL const int *)(rows + a.rows_offset))[group_id()];

    y += a.to.offset + group_id() * a.to.stride[2];
    if (row >= 0 && row < a.table_rows) {
        table += a.from.offset + row * a.from.stride[2];
        convert_row(y, a.to_type, table, a.from_type, 0, a.cols, lid);
    } else {
        for (i64 i = lid; i < a.cols; i += GROUP)
            store_any(y, a.to_type, i, 0.0f);
    }
}
