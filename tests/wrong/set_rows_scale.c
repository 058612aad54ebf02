/* SPDX-License-Identifier: MIT */
/* wrong: q8_0 divides by the scale after rounding it for storage, not by the computed
 * one. */
#include "reference.h"

static int32_t set_rows(void *device, void *queue, const struct hw_set_rows *op)
{
    const int32_t status = reference(HW_OP_SET_ROWS, op);
    const struct hw_tensor *table = &op->table, *x = &op->x;
    const int64_t cols = x->extent[1];

    (void)device;
    (void)queue;
    for (int64_t i = 0; table->dtype == HW_Q8_0 && x->rank == 2 && i < x->extent[0]; i++) {
        const int64_t row = (int64_t)get(&op->rows, i);
        unsigned char *block = (unsigned char *)hw_tensor_address(table) +
                               row * table->stride[0];
        if (row < 0 || row >= table->extent[0])
            continue;
        for (int64_t j = 0; j < cols; j++) {
            unsigned char *quantum = block + j / 32 * 34;
            const double d = storage_read(HW_F16, quantum, 0);
            const double q = d != 0 ? round(get(x, i * cols + j) / d) : 0;
            quantum[2 + j % 32] = (unsigned char)(signed char)fmin(fmax(q, -127), 127);
        }
    }
    return status;
}
WRONG("set_rows_scale", set_rows)
