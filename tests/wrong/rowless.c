/* SPDX-License-Identifier: MIT */
/* rowless.c - a correct plugin whose rows cannot be listed, to test what verify reports
 * then. */
#include "reference.h"

static const struct hw_host *words;

static int32_t fails(void *device, uint32_t op, uint32_t index, struct hw_kernel_info *info)
{
    (void)device, (void)op, (void)index, (void)info;
    return hw_fail(words, HW_DRIVER, "the list of kernels is torn");
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    const int32_t status = reference_fill(table, &reference_ops);
    words = host;
    table->kernel_info = fails;
    return status;
}
HW_PLUGIN("rowless", "vendor=tests\n", fill)
