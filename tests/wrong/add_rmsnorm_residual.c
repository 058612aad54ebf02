/* SPDX-License-Identifier: MIT */
/* wrong: the sum is normalised but not stored back. */
#include "reference.h"

static int32_t add_rmsnorm(void *device, void *queue, const struct hw_add_rmsnorm *op)
{
    const struct hw_tensor *residual = &op->residual;
    const int64_t count = storage_count(residual);
    double *kept = malloc((size_t)count * sizeof *kept + 1);

    (void)device;
    (void)queue;
    for (int64_t i = 0; kept && i < count; i++)
        kept[i] = get(residual, i);
    const int32_t status = kept ? reference(HW_OP_ADD_RMSNORM, op) : HW_NO_MEMORY;
    for (int64_t i = 0; kept && i < count; i++)
        set(residual, i, kept[i]);
    free(kept);
    return status;
}
WRONG("add_rmsnorm_residual", add_rmsnorm)
