/* SPDX-License-Identifier: MIT */
/* begun.c - an unfinished plugin: silu of f32 vectors is right, softmax rejects everything, the
 * other slots are empty. It has no supports() and lists no rows, so its ops are only known by
 * calling them. */
#include "reference.h"

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    (void)device, (void)queue;
    return op->x.dtype == HW_F32 && op->x.rank == 1 ? reference(HW_OP_SILU, op)
                                                    : HW_UNSUPPORTED;
}

static int32_t softmax(void *device, void *queue, const struct hw_softmax *op)
{
    (void)device, (void)queue, (void)op;
    return HW_UNSUPPORTED;
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops,
                                              .silu = silu,
                                              .softmax = softmax };
    (void)host;
    const int32_t status = reference_fill(table, &ops);
    table->supports = NULL;
    table->kernel_info = NULL;
    return status;
}
HW_PLUGIN("begun", "vendor=tests\n", fill)
