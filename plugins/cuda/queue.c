/* SPDX-License-Identifier: MIT */
/* Queues: a queue is a stream of the driver. */
#include "launch.h"

#include <stdlib.h>

static int32_t make(struct device *device, const struct hw_queue_desc *desc,
                    struct queue **out)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    queue->device = device;
    queue->choice = device->choice;
    const int32_t status = kernel_choose_for_queue(device->host, desc, &queue->choice);
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
    int32_t status = make(device, desc, &queue);
    if (status)
        return status;
    status = enter(device);
    if (!status) {
        status = answer(device,
                        device->cuda->stream_create(&queue->stream, STREAM_NON_BLOCKING),
                        "create a stream");
        leave(device);
    }
    if (status)
        free(queue);
    else
        *out = queue;
    return status;
}

int32_t queue_import(void *self, const struct hw_queue_desc *desc, const char *kind,
                     void *handle, void **out)
{
    struct device *device = self;
    struct queue *queue = NULL;
    int32_t status = check_kind(device->host, "queue", kind, "cuda.stream");
    if (!status)
        status = make(device, desc, &queue);
    if (status)
        return status;
    queue->stream = handle;
    queue->imported = queue->shared = true;
    *out = queue;
    return HW_OK;
}

int32_t queue_export(void *self, const char *kind, void **handle)
{
    struct queue *queue = self;
    const int32_t status = check_kind(queue->device->host, "queue", kind, "cuda.stream");
    if (status)
        return status;
    queue->shared = true;
    *handle = queue->stream;
    return HW_OK;
}

int32_t queue_wait(void *self)
{
    struct queue *queue = self;
    const int32_t status = enter(queue->device);
    if (status)
        return status;
    const int result = queue->device->cuda->stream_wait(queue->stream);
    leave(queue->device);
    return answer(queue->device, result, "complete the queue's work");
}

void queue_close(void *self)
{
    struct queue *queue = self;
    struct device *device = queue->device;
    if (enter_to_close(device, "close a queue")) {
        note(device, device->cuda->stream_wait(queue->stream),
             "complete the work of a queue that is closed");
        launch_release(device, &queue->workspace);
        if (!queue->imported)
            note(device, device->cuda->stream_destroy(queue->stream), "destroy a stream");
        leave(device);
    }
    free(queue);
}
