/* SPDX-License-Identifier: MIT */
/* wrong: YaRN scales the angles of all pairs. */
#include "reference.h"

static int32_t rope(void *device, void *queue, const struct hw_rope *op)
{
    struct hw_rope part = *op;

    (void)device;
    (void)queue;
    if (op->yarn != 0.0f && op->magnitude != 0.0f)
        part.yarn = 0.0f;
    return reference(HW_OP_ROPE, &part);
}
WRONG("rope_yarn", rope)
