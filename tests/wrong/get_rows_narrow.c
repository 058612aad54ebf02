/* SPDX-License-Identifier: MIT */
/* wrong: only the low 32 bits of an i64 row number count. */
#include "reference.h"

static int32_t get_rows(void *device, void *queue, const struct hw_get_rows *op)
{
    const int32_t status = reference(HW_OP_GET_ROWS, op);
    const int64_t cols = op->y.extent[op->y.rank - 1];

    (void)device;
    (void)queue;
    for (int64_t i = 0; op->y.rank == 2 && i < storage_count(&op->y); i++) {
        const char *number = (const char *)hw_tensor_address(&op->rows) +
                             i / cols * op->rows.stride[0];
        int32_t row = 0; /* little-endian */
        memcpy(&row, number, sizeof row);
        if (op->rows.dtype == HW_I64 && row >= 0 && row < op->table.extent[0] &&
            !storage_is_block(op->table.dtype))
            set(&op->y, i, get(&op->table, row * cols + i % cols));
    }
    return status;
}
WRONG("get_rows_narrow", get_rows)
