/* SPDX-License-Identifier: MIT */
/* copy.c - copies that need more than the copy op of the queue's device: plain transfers between
 * the device and the host, and copies between devices, which go through the host in slices
 * unless the plugin has a way of its own. */
#include "route/copy.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/layout.h"
#include "call/queue.h"
#include "memory/buffer.h"
#include "memory/device.h"
#include "memory/transfer.h"
#include "route/op_state.h"
#include "route/stage.h"
#include "route/support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES (UINT64_C(4) << 20) /* host memory for a copy between devices */
#define PLAIN_RUNS  64 /* the most pieces for which transfers are faster than a kernel */

/* ---- on the queue's device and the host ---- */

/* Whether the device may compute the copy: its plugin has the op, and it has not failed there. */
static bool has_op(const struct hw_queue *queue, const struct hw_tensor *dst,
                   const struct hw_tensor *src)
{
    const struct hw_copy op = { .src = *src, .dst = *dst };
    return plugin_has(queue->device->plugin, HW_OP_COPY) &&
           !admit(queue->device, HW_OP_COPY, &op);
}

/* Whether bytes can be transferred unchanged between the host and a device that cannot
 * access host memory, or that has no copy op. A transfer needs no scratch memory on the
 * device. */
static bool may_transfer(const struct hw_queue *queue, const struct hw_tensor *dst,
                         const struct hw_tensor *src)
{
    return !queue->recording && !dst->buffer != !src->buffer && dst->dtype == src->dtype &&
           (!queue->host_tensors || !has_op(queue, dst, src));
}

static enum hw_status copy_by_transfer(struct hw_queue *queue, const struct hw_tensor *dst,
                                       const struct hw_tensor *src)
{
    const enum hw_status status = dst->buffer ? stage_in(queue, HW_OP_COPY, dst, src)
                                              : stage_out(queue, HW_OP_COPY, dst, src);
    if (status) {
        queue_drain(queue); /* ends all use of the caller's host memory */
        return status;
    }
    count(&queue->calls[HW_OP_COPY].calls, 1);
    return settle_synchronous(queue);
}

/* ---- between devices ---- */

struct crossing {
    struct hw_queue *queue;
    void *memory;    /* SLICE_BYTES bytes, in the source's dtype */
    void *converted; /* in the destination's dtype, if its device cannot convert */
};

static bool is_foreign(const struct hw_queue *queue, const struct hw_tensor *t)
{
    return t->buffer && t->buffer->device != queue->device_impl;
}

/* Finds the queue whose device has the tensor. */
static enum hw_status queue_of(struct hw_queue *queue, const struct hw_tensor *t,
                               struct hw_queue **at)
{
    *at = queue;
    return is_foreign(queue, t) ? queue_helper(queue, buffer_of(t->buffer)->owner, at)
                                : HW_OK;
}

/* Copies on one queue, and waits. A plugin may refuse a copy only when it is submitted. */
static enum hw_status copy_on(struct hw_queue *queue, const struct hw_tensor *dst,
                              const struct hw_tensor *src)
{
    const struct hw_copy op = { .src = *src, .dst = *dst };
    enum hw_status status = hw_submit(queue, HW_OP_COPY, &op, sizeof op);
    if (status == HW_UNSUPPORTED && queue->is_helper && may_transfer(queue, dst, src))
        status = copy_by_transfer(queue, dst, src);
    return status ? status : queue_settle(queue);
}

/* If the device of dst cannot convert, the queue's own device does, or another by fallback. */
static enum hw_status copy_from_host(struct crossing *c, const struct hw_tensor *dst,
                                     const struct hw_tensor *host)
{
    struct hw_tensor converted;
    struct hw_queue *at;
    enum hw_status status = queue_of(c->queue, dst, &at);
    if (!status)
        status = copy_on(at, dst, host);
    if (status != HW_UNSUPPORTED || at == c->queue || dst->dtype == host->dtype)
        return status;
    status = hw_tensor_host(&converted, c->converted, dst->dtype, dst->rank, dst->extent);
    if (!status)
        status = copy_on(c->queue, &converted, host);
    return status ? status : copy_on(at, dst, &converted);
}

static enum hw_status cross_slice(struct crossing *c, const struct hw_tensor *dst,
                                  const struct hw_tensor *src)
{
    struct hw_tensor host;
    struct hw_queue *at;
    if (host_view(src, &host))
        return copy_from_host(c, dst, &host);
    enum hw_status status = queue_of(c->queue, src, &at);
    if (!status)
        status = hw_tensor_host(&host, c->memory, src->dtype, src->rank, src->extent);
    if (!status)
        status = copy_on(at, &host, src);
    return status ? status : copy_from_host(c, dst, &host);
}

static uint64_t larger_bytes(const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct hw_tensor a = *dst, b = *src;
    uint64_t of_a, of_b;
    if (!make_dense(&a, NULL, &of_a) || !make_dense(&b, NULL, &of_b))
        return UINT64_MAX;
    return of_a > of_b ? of_a : of_b;
}

static int64_t larger_block(const struct hw_tensor *dst, const struct hw_tensor *src)
{
    const int64_t a = hw_dtype_block(dst->dtype), b = hw_dtype_block(src->dtype);
    return a > b ? a : b;
}

/* Halves the outermost axis that can be halved, until a slice fits. */
static enum hw_status cross(struct crossing *c, const struct hw_tensor *dst,
                            const struct hw_tensor *src)
{
    if (larger_bytes(dst, src) <= SLICE_BYTES)
        return cross_slice(c, dst, src);
    int axis = 0;
    while (axis < dst->rank - 1 && dst->extent[axis] <= 1)
        axis++;
    const int64_t step = axis == dst->rank - 1 ? larger_block(dst, src) : 1;
    const int64_t extent = dst->extent[axis], middle = extent / step / 2 * step;
    struct hw_tensor a, b;
    enum hw_status status;
    if ((status = hw_tensor_slice(&a, dst, axis, 0, middle)) ||
        (status = hw_tensor_slice(&b, src, axis, 0, middle)) ||
        (status = cross(c, &a, &b)) ||
        (status = hw_tensor_slice(&a, dst, axis, middle, extent)) ||
        (status = hw_tensor_slice(&b, src, axis, middle, extent)))
        return status;
    return cross(c, &a, &b);
}

/* Waits for both devices to find out which of them is lost. Keeps the message. Waits for the queue
 * itself last, because it reports an error of a helper as its own unless the helper's device is
 * known to be lost. */
static void find_lost(struct hw_queue *queue, const struct hw_tensor *dst,
                      const struct hw_tensor *src)
{
    const struct saved_message saved = message_save();
    struct hw_queue *at;
    if (!queue_of(queue, dst, &at) && at != queue)
        queue_settle(at);
    if (!queue_of(queue, src, &at) && at != queue)
        queue_settle(at);
    queue_settle(queue);
    message_restore(&saved);
}

/* Tries a direct copy, which two devices of one plugin may support. */
static enum hw_status copy_by_peer(struct hw_queue *queue, const struct hw_tensor *dst,
                                   const struct hw_tensor *src)
{
    const struct plugin *plugin = queue->device->plugin;
    if (dst->dtype != src->dtype || !dst->buffer || !src->buffer ||
        buffer_of(dst->buffer)->owner->plugin != plugin ||
        buffer_of(src->buffer)->owner->plugin != plugin ||
        move_count(dst, src) > PLAIN_RUNS)
        return HW_UNSUPPORTED;
    const enum hw_status status = queue_move(queue, dst, src);
    if (status == HW_LOST)
        find_lost(queue, dst, src);
    return status;
}

/* The normal check of the op. */
static enum hw_status check_here(const struct hw_queue *queue, const struct hw_copy *op,
                                 bool *empty)
{
    struct check check = { .device = queue->device, .op = HW_OP_COPY };
    const enum hw_status status = check_call(op, &check);
    *empty = check.traits & TRAIT_EMPTY;
    return status;
}

/* Checks the op as if both buffers belonged to the queue's device. */
static enum hw_status check_crossing(struct hw_queue *queue, const struct hw_tensor *dst,
                                     const struct hw_tensor *src, bool *empty)
{
    struct hw_copy op = { .src = *src, .dst = *dst };
    struct buffer of_src = { 0 }, of_dst = { 0 };
    if (src->layout || dst->layout)
        return fail(HW_INVALID,
                    "copy: a packed tensor cannot be copied; copy the original");
    if (src->buffer) {
        of_src.base = *src->buffer;
        of_src.base.device = queue->device_impl;
        op.src.buffer = &of_src.base;
    }
    if (dst->buffer) {
        of_dst.base = *dst->buffer;
        of_dst.base.device = queue->device_impl;
        op.dst.buffer = dst->buffer == src->buffer ? op.src.buffer : &of_dst.base;
    }
    return check_here(queue, &op, empty);
}

/* Copies through the host. */
static enum hw_status cross_whole(struct hw_queue *queue, const struct hw_tensor *dst,
                                  const struct hw_tensor *src)
{
    struct crossing c = { .queue = queue,
                          .memory = malloc(SLICE_BYTES),
                          .converted = malloc(SLICE_BYTES) };
    enum hw_status status = c.memory && c.converted
                                ? cross(&c, dst, src)
                                : fail(HW_NO_MEMORY, "copy: out of memory");
    if (status)
        queue_drain(queue);
    free(c.memory);
    free(c.converted);
    return status;
}

static enum hw_status copy_across(struct hw_queue *queue, const struct hw_tensor *dst,
                                  const struct hw_tensor *src)
{
    struct call_counts *counts = &queue->calls[HW_OP_COPY];
    const uint64_t calls = counts->calls, fallbacks = counts->fallbacks;
    bool empty = false;
    if (queue->recording)
        return fail(HW_UNSUPPORTED,
                    "copy: copies between devices cannot be recorded in graphs");
    enum hw_status status = check_crossing(queue, dst, src, &empty);
    if (status || empty)
        return status;
    status = copy_by_peer(queue, dst, src);
    if (status == HW_UNSUPPORTED && !(status = queue_settle(queue)))
        status = cross_whole(queue, dst, src);
    /* All slices count as one call, and as at most one fallback. */
    const bool elsewhere = !status && counts->fallbacks > fallbacks;
    atomic_store(&counts->calls, calls + !status);
    atomic_store(&counts->fallbacks, fallbacks + elsewhere);
    return status;
}

/* Helper queues exist only within one context. */
static enum hw_status check_context(const struct hw_queue *queue, const char *operand,
                                    const struct hw_tensor *t)
{
    if (!t->buffer || buffer_of(t->buffer)->owner->context == queue->device->context)
        return HW_OK;
    return fail(
        HW_INVALID,
        "copy: %s is in a buffer of another context; copy it to host memory on a queue of "
        "that context",
        operand);
}

/* Does a copy that needs no op, and sets *status. Returns false and does nothing if the copy op
 * should do the copy. */
static bool copy_without_op(struct hw_queue *queue, const struct hw_copy *op,
                            enum hw_status *status)
{
    const struct hw_tensor *dst = &op->dst, *src = &op->src;
    union any_op as;
    bool empty;
    if ((*status = check_context(queue, "dst", dst)) ||
        (*status = check_context(queue, "src", src)))
        return true;
    if (is_foreign(queue, dst) || is_foreign(queue, src)) {
        *status = copy_across(queue, dst, src);
        if (!*status)
            *status = settle_synchronous(queue);
        return true;
    }
    if (!may_transfer(queue, dst, src))
        return false;
    if ((*status = check_here(queue, op, &empty)))
        return true;
    if (empty || (move_count(dst, src) > PLAIN_RUNS &&
                  device_computes(queue->device, HW_OP_COPY, op, &as) != HW_UNSUPPORTED))
        return false;
    *status = copy_by_transfer(queue, dst, src);
    return true;
}

enum hw_status submit_copy(struct hw_queue *queue, uint32_t op, const void *args,
                           size_t size)
{
    union any_op copy;
    enum hw_status status = submit_begin(queue, op, &args, size, &copy);
    if (status || copy_without_op(queue, args, &status))
        return status;
    return submit_whole(queue, op, args);
}

/* ---- to and from plain memory ---- */

/* Describes the elements of `tensor`, contiguous, in the caller's memory. */
static enum hw_status in_callers_memory(const char *function,
                                        const struct hw_tensor *tensor, const void *data,
                                        uint64_t bytes, struct hw_tensor *host)
{
    char why[FAULT_SIZE], text[DESCRIBE_SIZE];
    uint64_t needed;
    if (!tensor)
        return fail_null(function, "tensor");
    if (shape_fault(tensor, why))
        return fail(HW_INVALID, "%s: tensor: %s", function, why);
    if (tensor->layout)
        return fail(HW_INVALID, "%s: a packed tensor cannot be read or written", function);
    *host = *tensor;
    host->buffer = NULL;
    host->data = (void *)(uintptr_t)data;
    host->offset = 0;
    if (!make_dense(host, NULL, &needed) || needed != bytes)
        return fail(HW_INVALID, "%s: bytes is %" PRIu64 ", must be %" PRIu64 " for %s",
                    function, bytes, needed, describe(tensor, text));
    if (bytes && !data)
        return fail_null(function, "data");
    return HW_OK;
}

/* Copies between the tensor and the caller's memory. */
static enum hw_status copy_plain(struct hw_queue *queue, const char *function,
                                 const struct hw_tensor *tensor, const void *data,
                                 uint64_t bytes, bool write)
{
    struct hw_tensor host;
    enum hw_status status = queue_ready(queue, function);
    if (!status)
        status = in_callers_memory(function, tensor, data, bytes, &host);
    return status ? status
                  : hw_copy(queue, &(struct hw_copy){ .src = write ? host : *tensor,
                                                      .dst = write ? *tensor : host });
}

enum hw_status hw_tensor_write(struct hw_queue *queue, const struct hw_tensor *tensor,
                               const void *data, uint64_t bytes)
{
    return copy_plain(queue, "hw_tensor_write", tensor, data, bytes, true);
}

enum hw_status hw_tensor_read(struct hw_queue *queue, const struct hw_tensor *tensor,
                              void *data, uint64_t bytes)
{
    return copy_plain(queue, "hw_tensor_read", tensor, data, bytes, false);
}
