/* SPDX-License-Identifier: MIT */
/* wrong: row strides are ignored, as if the rows were contiguous. */
#include "reference.h"

static int32_t add(void *device, void *queue, const struct hw_add *op)
{
    struct hw_add part = *op;

    (void)device;
    (void)queue;
    if (part.a.rank >= 2)
        part.a.stride[part.a.rank - 2] = part.a.extent[part.a.rank - 1] *
                                         hw_dtype_bytes(part.a.dtype);
    return reference(HW_OP_ADD, &part);
}
WRONG("add_stride", add)
