/* SPDX-License-Identifier: MIT */
/* wrong: f32 becomes bf16 by dropping bits, not by rounding. */
#include "reference.h"

static int32_t copy(void *device, void *queue, const struct hw_copy *op)
{
    const int32_t status = reference(HW_OP_COPY, op);

    (void)device;
    (void)queue;
    for (int64_t i = 0; i < storage_count(&op->src); i++)
        if (op->src.dtype == HW_F32 && op->dst.dtype == HW_BF16) {
            uint32_t bits;
            memcpy(&bits, element(&op->src, i), sizeof bits);
            memcpy(element(&op->dst, i), &(uint16_t){ (uint16_t)(bits >> 16) }, 2);
        }
    return status;
}
WRONG("copy_truncate", copy)
