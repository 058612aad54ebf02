/* SPDX-License-Identifier: MIT */
/* wrong: without a magnitude, YaRN's is 1 instead of 1 + 0.1 ln(1/scale). */
#include "reference.h"

static int32_t rope(void *device, void *queue, const struct hw_rope *op)
{
    struct hw_rope part = *op;

    (void)device;
    (void)queue;
    if (op->magnitude == 0.0f)
        part.magnitude = 1.0f;
    return reference(HW_OP_ROPE, &part);
}
WRONG("rope_magnitude", rope)
