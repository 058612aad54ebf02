/* SPDX-License-Identifier: MIT */
/* wrong: if the row length is not a multiple of four, the last element is not written. */
#include "reference.h"

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    unsigned char kept[4];
    const int64_t count = storage_count(&op->y);
    const size_t bytes = (size_t)hw_dtype_bytes(op->y.dtype);

    (void)device;
    (void)queue;
    if (count % 4)
        memcpy(kept, element(&op->y, count - 1), bytes);
    const int32_t status = reference(HW_OP_SILU, op);
    if (count % 4)
        memcpy(element(&op->y, count - 1), kept, bytes);
    return status;
}
WRONG("silu_tail", silu)
