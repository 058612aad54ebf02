/* SPDX-License-Identifier: MIT */
/* Queues. An op is complete when its call returns, so there is nothing to wait for. */
#include "cpu.h"

#include <stdlib.h>

int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    struct device *dev = device;
    const uint32_t known = HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING;
    if (!hw_knows(desc, sizeof *desc) || desc->flags & ~known)
        return too_new(dev->host, "queue");
    struct queue *made = calloc(1, sizeof *made + launch_kernels.count);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY, "out of memory");
    made->device = dev;
    made->choice = dev->choice;
    if (desc->kernel && desc->kernel[0]) {
        const int32_t status = kernel_choose(dev->host, desc->kernel, &made->choice);
        if (status) {
            free(made);
            return status;
        }
    }
    *queue = made;
    return HW_OK;
}

void queue_close(void *queue)
{
    free(queue);
}

int32_t queue_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}
