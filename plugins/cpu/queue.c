/* SPDX-License-Identifier: MIT */
/* Queues. An op is complete when its call returns, so there is nothing to wait for. */
#include "cpu.h"

#include <stdlib.h>

void queue_close(void *queue)
{
    struct queue *q = queue;
    launch_drop_workspace(q);
    free(q);
}

int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    struct device *dev = device;
    struct queue *made = calloc(1, sizeof *made + launch_kernels.count);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY, "out of memory");
    made->device = dev;
    made->choice = dev->choice;
    const int32_t status = kernel_choose_for_queue(dev->host, desc, &made->choice);
    if (status)
        queue_close(made);
    else
        *queue = made;
    return status;
}

int32_t queue_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}
