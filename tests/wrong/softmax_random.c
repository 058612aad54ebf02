/* SPDX-License-Identifier: MIT */
/* wrong: the last bit of the first element depends on the number of calls. */
#include "reference.h"

static int32_t softmax(void *device, void *queue, const struct hw_softmax *op)
{
    static int calls;
    const int32_t status = reference(HW_OP_SOFTMAX, op);

    (void)device;
    (void)queue;
    if (storage_count(&op->y))
        *(unsigned char *)element(&op->y, 0) ^= (unsigned char)(calls++ & 1);
    return status;
}
WRONG("softmax_random", softmax)
