/* SPDX-License-Identifier: MIT */
/* wrong: a negative length in memory is not clamped to zero; the full length is used. */
#include "reference.h"

static int32_t attention(void *device, void *queue, const struct hw_attention *op)
{
    struct hw_attention part = *op;

    (void)device;
    (void)queue;
    for (int64_t i = 0; op->lengths.dtype && i < storage_count(&op->lengths); i++)
        if (get(&op->lengths, i) < 0)
            part.lengths.dtype = HW_NONE;
    return reference(HW_OP_ATTENTION, &part);
}
WRONG("attention_length", attention)
