/* SPDX-License-Identifier: MIT */
/* wrong: an id past the last expert selects the last one, instead of zeros. */
#include "reference.h"

static int32_t matmul_id(void *device, void *queue, const struct hw_matmul_id *op)
{
    struct hw_matmul_id clamped = *op;
    const int64_t count = storage_count(&op->ids), experts = op->b.extent[0];
    int32_t *ids = malloc((size_t)count * sizeof *ids + 1);
    int32_t status = HW_NO_MEMORY;

    (void)device;
    (void)queue;
    for (int64_t i = 0; ids && i < count; i++) {
        const double id = get(&op->ids, i);
        ids[i] = (int32_t)(id < (double)experts ? id : (double)(experts - 1));
    }
    clamped.ids.buffer = NULL;
    clamped.ids.data = ids;
    clamped.ids.offset = 0;
    clamped.ids.stride[1] = sizeof *ids;
    clamped.ids.stride[0] = op->ids.extent[1] * (int64_t)sizeof *ids;
    if (ids)
        status = reference(HW_OP_MATMUL_ID, &clamped);
    free(ids);
    return status;
}
WRONG("matmul_id_clamp", matmul_id)
