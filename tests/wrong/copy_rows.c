/* SPDX-License-Identifier: MIT */
/* wrong: a transfer of several rows moves only the first one. The memory is declared as the
 * device's own, so that copies to and from the host are transfers. */
#include "reference.h"

static struct hw_plugin right;

static int32_t first_row(void *queue, const struct hw_transfer *transfer)
{
    struct hw_transfer one = *transfer;
    one.rows = 1;
    return right.transfer(queue, &one);
}

static int32_t info_without_host_tensors(void *self, int32_t index,
                                         struct hw_device_info *info)
{
    const int32_t status = right.device_info(self, index, info);
    info->features = 0;
    return status;
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    const int32_t status = reference_fill(table, &reference_ops);
    (void)host;
    right = *table;
    table->transfer = first_row;
    table->device_info = info_without_host_tensors;
    return status;
}
HW_PLUGIN("copy_rows", "vendor=tests\n", fill)
