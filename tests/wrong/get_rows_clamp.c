/* SPDX-License-Identifier: MIT */
/* wrong: a row outside the table reads as the last row, not as zeros. */
#include "reference.h"

static int32_t get_rows(void *device, void *queue, const struct hw_get_rows *op)
{
    const int32_t status = reference(HW_OP_GET_ROWS, op);
    const int64_t cols = op->y.extent[1], last = op->table.extent[0] - 1;

    (void)device;
    (void)queue;
    for (int64_t i = 0; op->y.rank == 2 && i < storage_count(&op->y); i++) {
        const double row = get(&op->rows, i / cols);
        if (last >= 0 && (row < 0 || row > (double)last) &&
            !storage_is_block(op->table.dtype))
            set(&op->y, i, get(&op->table, last * cols + i % cols));
    }
    return status;
}
WRONG("get_rows_clamp", get_rows)
