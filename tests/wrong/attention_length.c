/* SPDX-License-Identifier: MIT */
/* wrong: lengths that lie in memory are not clamped from below: they read as full. */
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
