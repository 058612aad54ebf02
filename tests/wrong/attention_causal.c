/* SPDX-License-Identifier: MIT */
/* wrong: a query does not see its own key. */
#include "reference.h"

static int32_t attention(void *device, void *queue, const struct hw_attention *op)
{
    struct hw_attention part = *op;
    const int64_t most = op->k.extent[op->k.rank - 3];

    (void)device;
    (void)queue;
    if (op->causal && !op->lengths.dtype && most > 1)
        part.length = op->length > 1 ? op->length - 1 : most - 1;
    return reference(HW_OP_ATTENTION, &part);
}
WRONG("attention_causal", attention)
