/* SPDX-License-Identifier: MIT */
/* slot.c - see slot.h. */
#include "slot.h"

#include <stdlib.h>

enum hw_status slot_open(struct slot *slot, struct hw_queue *queue, size_t bytes)
{
    struct hw_device *device = hw_queue_device(queue);
    *slot = (struct slot){ 0 };
    enum hw_status status = hw_buffer_alloc(device, bytes, HW_BUFFER_PINNED, &slot->buffer);
    if (!status)
        slot->host = hw_buffer_host(slot->buffer);
    else if (status == HW_UNSUPPORTED && (slot->host = malloc(bytes)))
        status = HW_OK;
    if (!status)
        status = hw_event_create(device, 0, &slot->event);
    return status == HW_UNSUPPORTED ? HW_OK : status;
}

enum hw_status slot_mark(struct slot *slot, struct hw_queue *queue)
{
    slot->busy = queue;
    return slot->event ? hw_event_record(slot->event, queue) : HW_OK;
}

enum hw_status slot_wait(struct slot *slot)
{
    struct hw_queue *queue = slot->busy;
    slot->busy = NULL;
    if (!queue)
        return HW_OK;
    return slot->event ? hw_event_sync(slot->event) : hw_queue_wait(queue);
}

enum hw_status slot_i32(const struct slot *slot, size_t index, struct hw_tensor *tensor)
{
    const int64_t one = 1;
    return slot->buffer
               ? hw_tensor_view(tensor, slot->buffer, index * sizeof(int32_t), HW_I32, 1,
                                &one)
               : hw_tensor_host(tensor, (int32_t *)slot->host + index, HW_I32, 1, &one);
}

void slot_close(struct slot *slot)
{
    hw_event_free(slot->event);
    if (slot->buffer)
        hw_buffer_free(slot->buffer);
    else
        free(slot->host);
    *slot = (struct slot){ 0 };
}
