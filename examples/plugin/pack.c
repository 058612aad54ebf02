/* SPDX-License-Identifier: MIT */
/* pack.c - packed weights: a matrix of f32 without gaps. */
#include "discrete.h"

void pack_view(struct hw_tensor *t)
{
    t->stride[0] = t->extent[1] * (int64_t)sizeof(float);
    t->stride[1] = sizeof(float);
}

int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                  uint32_t *layout)
{
    if (src->dtype != HW_F32 || src->rank != 2)
        return hw_fail(((struct device *)device)->instance->host, HW_UNSUPPORTED,
                       "packs matrices of f32");
    *bytes = (uint64_t)(src->extent[0] * src->extent[1]) * sizeof(float);
    *layout = LAYOUT_DENSE;
    return HW_OK;
}

int32_t pack(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct hw_copy op = { .src = *src, .dst = *dst };
    pack_view(&op.dst);
    return launch_ops.copy(((struct queue *)queue)->device, queue, &op);
}
