/* SPDX-License-Identifier: MIT */
/* wrong: a slope of zero turns a mask of -inf into NaN. */
#include "reference.h"

static int32_t softmax(void *device, void *queue, const struct hw_softmax *op)
{
    const int32_t status = reference(HW_OP_SOFTMAX, op);
    bool hidden = false, zero = false;

    (void)device;
    (void)queue;
    for (int64_t i = 0; op->slopes.dtype && i < storage_count(&op->slopes); i++)
        zero = zero || get(&op->slopes, i) == 0;
    for (int64_t i = 0; op->mask.dtype && i < storage_count(&op->mask); i++)
        hidden = hidden || get(&op->mask, i) == -(double)INFINITY;
    for (int64_t i = 0; zero && hidden && i < storage_count(&op->y); i++)
        set(&op->y, i, (double)NAN);
    return status;
}
WRONG("softmax_masked", softmax)
