/* SPDX-License-Identifier: MIT */
/* Queues: in-order command queues. */
#include "opencl.h"

#include <stdlib.h>

static int32_t make(struct device *device, const struct hw_queue_desc *desc,
                    struct queue **out)
{
    int32_t status = check_lost(device);
    if (status)
        return status;
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    queue->device = device;
    queue->choice = device->choice;
    status = kernel_choose_for_queue(device->host, desc, &queue->choice);
    if (status)
        free(queue);
    else
        *out = queue;
    return status;
}

int32_t queue_open(void *self, const struct hw_queue_desc *desc, void **out)
{
    struct device *device = self;
    struct queue *queue = NULL;
    int error = 0;
    int32_t status = make(device, desc, &queue);
    if (status)
        return status;
    queue->handle = device->cl->create_queue(
        device->context, device->handle,
        desc->flags & HW_QUEUE_TIMING ? QUEUE_PROFILING : 0, &error);
    status = answer(device, error, "make a queue");
    if (status)
        free(queue);
    else
        *out = queue;
    return status;
}

/* Ops are submitted one after the other, without events or barriers between them. */
static int32_t check_properties(const struct device *device,
                                const struct hw_queue_desc *desc, uint64_t properties)
{
    if (properties & QUEUE_OUT_OF_ORDER)
        return hw_fail(
            device->host, HW_UNSUPPORTED,
            "the queue is out-of-order, and the work of a queue has to be done in "
            "order; make it without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE");
    if (desc->flags & HW_QUEUE_TIMING && !(properties & QUEUE_PROFILING))
        return hw_fail(device->host, HW_UNSUPPORTED,
                       "HW_QUEUE_TIMING: the queue does not measure time; make it with "
                       "CL_QUEUE_PROFILING_ENABLE");
    return HW_OK;
}

/* A queue of another context cannot use the device's kernels and memory. */
static int32_t retain_imported(struct device *device, const struct hw_queue_desc *desc,
                               void *handle)
{
    void *context = NULL;
    uint64_t properties = 0;
    int error = device->cl->queue_info(handle, QUEUE_CONTEXT, sizeof context, &context,
                                       NULL);
    if (!error && context != device->context)
        return other_context(device, "queue");
    if (!error)
        error = device->cl->queue_info(handle, QUEUE_PROPERTIES, sizeof properties,
                                       &properties, NULL);
    const int32_t status = error ? HW_OK : check_properties(device, desc, properties);
    if (status)
        return status;
    return answer(device, error ? error : device->cl->retain_queue(handle),
                  "import a queue");
}

/* "opencl.queue": an in-order queue of the application, created in the context of this device. */
int32_t queue_import(void *self, const struct hw_queue_desc *desc, const char *kind,
                     void *handle, void **out)
{
    struct device *device = self;
    struct queue *queue = NULL;
    int32_t status = check_kind(device->host, "queue", kind, "opencl.queue");
    if (!status)
        status = make(device, desc, &queue);
    if (status)
        return status;
    queue->handle = handle;
    status = retain_imported(device, desc, handle);
    if (status)
        free(queue);
    else
        *out = queue;
    return status;
}

int32_t queue_export(void *self, const char *kind, void **handle)
{
    struct queue *queue = self;
    int32_t status = check_kind(queue->device->host, "queue", kind, "opencl.queue");
    if (!status)
        status = check_lost(queue->device);
    if (status)
        return status;
    queue->unflushed = 0;
    *handle = queue->handle;
    return answer(queue->device, queue->device->cl->flush(queue->handle), "export a queue");
}

int32_t queue_wait(void *self)
{
    struct queue *queue = self;
    const int32_t status = check_lost(queue->device);
    if (status)
        return status;
    queue->unflushed = 0;
    return answer(queue->device, queue->device->cl->finish(queue->handle),
                  "complete the queue's work");
}

void queue_close(void *self)
{
    struct queue *queue = self;
    struct device *device = queue->device;
    note(device, device->cl->finish(queue->handle),
         "complete the work of a queue that is closed");
    program_drop(queue);
    launch_release(queue);
    note(device, device->cl->release_queue(queue->handle), "release a queue");
    free(queue);
}
