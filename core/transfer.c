/* SPDX-License-Identifier: MIT */
/* transfer.c - bytes from here to there: within a device, between a device and the host, and
 * hw_copy() between any two places. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

enum hw_status transfer(struct hw_queue *queue, const struct hw_transfer *t)
{
    struct hw_transfer sized = *t;
    sized.size = sizeof sized;
    if (!sized.bytes)
        return HW_OK;
    fail(HW_OK, "no reason given");
    int32_t status = queue->device->plugin->table.transfer(queue->impl, &sized);
    if (status)
        return fail_in(queue_result(queue, status), "%s: move %llu bytes: ",
                       queue->device->name, (unsigned long long)sized.bytes);
    return HW_OK;
}

/* ---- a tensor's span, gaps and all ---- */

enum hw_status span_to_host(struct hw_queue *queue, const struct hw_tensor *tensor,
                            bool read, struct hw_tensor *host, void **copy)
{
    uint64_t bytes = hw_tensor_bytes(tensor);
    *copy = NULL;
    *host = *tensor;
    if (!tensor->buffer)
        return HW_OK;
    *copy = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!*copy)
        return fail(HW_NO_MEMORY, "out of memory for %llu bytes on the host",
                    (unsigned long long)bytes);
    host->buffer = NULL;
    host->data = *copy;
    host->offset = 0;
    /* What is written with gaps goes back whole, so the gaps have to be there. */
    if (!read && tensor_is_dense(tensor))
        return HW_OK;
    enum hw_status status = transfer(queue, &(struct hw_transfer){
                                                .src = tensor->buffer,
                                                .src_offset = tensor->offset,
                                                .dst_host = *copy,
                                                .bytes = bytes });
    if (!status)
        status = hw_queue_wait(queue);
    if (status) {
        free(*copy);
        *copy = NULL;
    }
    return status;
}

enum hw_status span_from_host(struct hw_queue *queue, const struct hw_tensor *tensor,
                              const struct hw_tensor *host)
{
    enum hw_status status = transfer(queue, &(struct hw_transfer){
                                                .dst = tensor->buffer,
                                                .dst_offset = tensor->offset,
                                                .src_host = host->data,
                                                .bytes = hw_tensor_bytes(host) });
    return status ? status : hw_queue_wait(queue);
}

/* ---- between any two places ---- */

static enum hw_status submit_copy(struct hw_queue *queue, const struct hw_tensor *dst,
                                  const struct hw_tensor *src)
{
    const struct hw_copy op = { .src = *src, .dst = *dst };
    return hw_submit(queue, HW_OP_COPY, &op, sizeof op);
}

/* The part that happens on another device: its own queue, waited for at the end. */
static enum hw_status copy_on(struct hw_device *device, const struct hw_tensor *dst,
                              const struct hw_tensor *src)
{
    struct hw_queue *service;
    enum hw_status status = service_lend(device, &service);
    if (status)
        return status;
    status = submit_copy(service, dst, src);
    if (!status)
        status = hw_queue_wait(service);
    service_return(device);
    return status;
}

/* src's bytes as they are, in host memory; its device turns what has gaps into rows first. */
static enum hw_status fetch(const struct hw_tensor *src, struct hw_tensor *host)
{
    if (!hw_dtype_block(src->dtype) || src->rank < 1 || src->rank > HW_MAX_RANK)
        return fail(HW_INVALID, "hw_copy: src is absent or broken");
    *host = *src;
    host->buffer = NULL;
    tensor_pack_strides(host);
    const uint64_t bytes = hw_tensor_bytes(host);
    host->data = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!host->data)
        return fail(HW_NO_MEMORY, "out of memory for %llu bytes on the host",
                    (unsigned long long)bytes);
    enum hw_status status = copy_on(hw_buffer_device(src->buffer), host, src);
    if (status)
        free(host->data);
    return status;
}

enum hw_status hw_copy(struct hw_queue *queue, const struct hw_tensor *dst,
                       const struct hw_tensor *src)
{
    if (!queue || !dst || !src)
        return fail(HW_INVALID, "hw_copy: queue, dst and src may not be NULL");
    struct hw_device *from = hw_buffer_device(src->buffer);
    struct hw_device *to = hw_buffer_device(dst->buffer);
    if ((!from || from == queue->device) && (!to || to == queue->device))
        return submit_copy(queue, dst, src);
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_copy: between devices, while the queue records");

    struct hw_tensor host;
    enum hw_status status = hw_queue_wait(queue);
    if (status)
        return status;
    if (!from || !to || from == to)
        return copy_on(from ? from : to, dst, src);
    if ((status = fetch(src, &host)))
        return status;
    status = copy_on(to, dst, &host);
    free(host.data);
    return status;
}
