/* SPDX-License-Identifier: MIT */
/* wrong: the input is used as scratch memory. */
#include "reference.h"

static int32_t rmsnorm(void *device, void *queue, const struct hw_rmsnorm *op)
{
    const int32_t status = reference(HW_OP_RMSNORM, op);

    (void)device;
    (void)queue;
    if (storage_count(&op->x) && hw_tensor_address(&op->x) != hw_tensor_address(&op->y))
        set(&op->x, 0, 0.25);
    return status;
}
WRONG("rmsnorm_clobber", rmsnorm)
