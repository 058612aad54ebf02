/* SPDX-License-Identifier: MIT */
/* pack.c - weights in a layout that only their device knows. */
#include "base/argument.h"
#include "base/message.h"
#include "call/queue.h"
#include "call/signature.h"
#include "memory/buffer.h"
#include "memory/device.h"
#include "route/cost.h"
#include "route/scratch.h"

#include <string.h>

static enum hw_status tensor_pack(struct hw_queue *queue, const struct hw_tensor *weights,
                                  struct hw_tensor *packed)
{
    struct hw_device *device = queue->device;
    struct buffer *buffer;
    struct hw_tensor dst = *weights;
    uint64_t bytes = 0;
    plugin_message_clear();
    enum hw_status status = device_result(
        device,
        device->plugin->table.pack_size(device->impl, weights, &bytes, &dst.layout));
    if (!status && !dst.layout)
        status = fail(HW_INTERNAL, "the plugin returned layout 0");
    if (status || (status = buffer_make(device, bytes, 0, &buffer)))
        return fail_in(status, "hw_tensor_pack on %s: ", device->name);
    dst.buffer = &buffer->base;
    dst.data = NULL;
    dst.offset = 0;
    memset(dst.stride, 0, sizeof dst.stride);
    plugin_message_clear();
    status = device_result(device, device->plugin->table.pack(queue->impl, &dst, weights));
    if (status) {
        /* Work that the plugin queued before the error may still write to the buffer. */
        queue_free_later(queue, buffer);
        return fail_in(status, "hw_tensor_pack on %s: ", device->name);
    }
    if ((status = settle_synchronous(queue))) {
        buffer_drop(buffer);
        return status;
    }
    buffer->packed = dst;
    buffer_list(buffer);
    *packed = dst;
    return HW_OK;
}

enum hw_status hw_tensor_pack(struct hw_queue *queue, const struct hw_tensor *weights,
                              struct hw_tensor *packed)
{
    enum hw_status status = queue_ready(queue, "hw_tensor_pack");
    if (status)
        return status;
    REQUIRE(weights);
    REQUIRE(packed);
    const struct hw_tensor given = *weights;
    memset(packed, 0, sizeof *packed);
    if (given.layout)
        return fail(HW_INVALID, "hw_tensor_pack: weights are already packed");
    if (queue->recording)
        return fail(HW_INVALID, "hw_tensor_pack: the queue is recording a graph");
    status = check_tensor(queue, "hw_tensor_pack", 0, &given, false);
    cost_route_other_work(queue);
    return status ? status : tensor_pack(queue, &given, packed);
}
