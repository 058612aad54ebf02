/* SPDX-License-Identifier: MIT */
/* route.c - the cold path of a call: operands that the plugin cannot take as they are.
 * Views whose innermost axis is not contiguous are copied to scratch memory by the plugin's
 * own copy op. Host tensors are copied to the device and back if the device cannot access
 * them. All of this happens in the queue's order, and is counted. The plugin is asked first
 * whether it supports the op, so that nothing is copied in vain. */
#include "route/route.h"

#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/graph.h"
#include "call/queue.h"
#include "memory/buffer.h"
#include "memory/device.h"
#include "memory/transfer.h"
#include "route/cost.h"
#include "route/fallback.h"
#include "route/op_state.h"
#include "route/scratch.h"
#include "route/stage.h"
#include "route/support.h"

#include <string.h>

/* ---- a call whose operands are replaced ---- */

struct call {
    struct hw_queue *queue;
    uint32_t op;
    union any_op whole;                   /* with the caller's operands */
    union any_op args;                    /* with the operands that the plugin gets */
    struct buffer *scratch[MAX_OPERANDS]; /* NULL: the caller's operand is used */
    bool shares;                          /* the result of stage_shares() */
};

/* Whether the memory is from stage_shared(): no other scratch memory is pinned. */
static bool is_shared(const struct buffer *scratch)
{
    return scratch->base.flags & HW_BUFFER_PINNED;
}

static enum hw_status view_copy(struct call *call, const struct hw_tensor *dst,
                                const struct hw_tensor *src, const struct hw_tensor *dense)
{
    struct hw_queue *queue = call->queue;
    const struct hw_copy copy = copy_of_view(dst, src, dense);
    int32_t status = plugin_call(queue, HW_OP_COPY, &copy);
    if (status)
        return fail_in(device_result(queue->device, status),
                       "%s: copying a view on %s: ", hw_op_name(call->op),
                       queue->device->name);
    count(&queue->calls[call->op].copied_views, 1);
    return HW_OK;
}

/* Makes a contiguous replacement in scratch memory, with the operand's contents if the op
 * reads them. */
static enum hw_status operand_replace(struct call *call, uint32_t index)
{
    const struct operand_row *operand = &op_rows[call->op].operands[index];
    const struct hw_tensor *t = operand_at(&call->whole, operand);
    struct hw_tensor *dense = operand_in(&call->args, operand);
    struct buffer **scratch = &call->scratch[index];
    enum hw_status status = HW_OK;
    if (call->shares)
        status = stage_shared(call->queue, call->op, operand->role, t, scratch);
    if (!status && !*scratch)
        status = scratch_take(call->queue, dense_bytes(t), 0, scratch);
    if (status)
        return status;
    *dense = dense_at(t, &(*scratch)->base, NULL);
    if (is_shared(*scratch) || !role_reads(operand->role))
        return HW_OK;
    return must_stage(call->queue->device, t) ? stage_in(call->queue, call->op, dense, t)
                                              : view_copy(call, dense, t, dense);
}

static enum hw_status call_replace(struct call *call)
{
    const struct op_row *row = &op_rows[call->op];
    enum hw_status status = HW_OK;
    memcpy(&call->args, &call->whole, row->size);
    call->shares = stage_shares(call->queue->device, call->op, &call->whole);
    for (uint32_t i = 0; i < row->operand_count && !status; i++) {
        straighten_empty(call->op, operand_in(&call->args, &row->operands[i]));
        if (must_replace(call->queue->device, call->op,
                         operand_at(&call->whole, &row->operands[i])))
            status = operand_replace(call, i);
    }
    return status;
}

static enum hw_status call_write_back(struct call *call)
{
    const struct op_row *row = &op_rows[call->op];
    enum hw_status status = HW_OK;
    for (uint32_t i = 0; i < row->operand_count && !status; i++) {
        if (!call->scratch[i] || !role_writes(row->operands[i].role))
            continue;
        const struct hw_tensor *t = operand_at(&call->whole, &row->operands[i]);
        const struct hw_tensor *dense = operand_at(&call->args, &row->operands[i]);
        status = is_shared(call->scratch[i])
                     ? stage_back(call->queue, call->op, t, call->scratch[i])
                 : must_stage(call->queue->device, t)
                     ? stage_out(call->queue, call->op, t, dense)
                     : view_copy(call, t, dense, dense);
    }
    return status;
}

/* Copying views uses the copy op, which may still be untested. */
static enum hw_status call_admit_copies(const struct call *call)
{
    const struct op_row *row = &op_rows[call->op];
    struct hw_device *device = call->queue->device;
    enum hw_status status = HW_OK;
    for (uint32_t i = 0; i < row->operand_count && !status; i++) {
        const struct hw_tensor *t = operand_at(&call->whole, &row->operands[i]);
        const struct hw_copy copy = { .src = *t, .dst = *t };
        if (must_replace(device, call->op, t) && !must_stage(device, t))
            status = admit(device, HW_OP_COPY, &copy);
    }
    return status;
}

/* `given`: the op as the caller passed it. */
static enum hw_status call_routed(struct call *call, const void *given)
{
    struct hw_queue *queue = call->queue;
    enum hw_status status = call_admit_copies(call);
    if (!status)
        status = call_replace(call);
    if (status == HW_UNSUPPORTED)
        return fall_back(queue, call->op, given, status);
    if (status)
        return status;
    int32_t answer = plugin_call(queue, call->op, &call->args);
    if (answer)
        return submit_failed(queue, call->op, given, answer);
    if (!(status = call_write_back(call)))
        count(&queue->calls[call->op].calls, 1);
    return status;
}

/* An op that no device may compute is refused when it is recorded, not at each launch. */
static enum hw_status call_record(struct hw_queue *queue, uint32_t op, const void *args,
                                  uint32_t traits)
{
    union any_op as;
    enum hw_status status = traits & TRAIT_EMPTY
                                ? HW_OK
                                : device_computes(queue->device, op, args, &as);
    if (status == HW_UNSUPPORTED)
        status = may_fall_back(queue, op, args, status);
    return status ? status : graph_add(queue, op, args, traits);
}

enum hw_status route(struct hw_queue *queue, uint32_t op, const void *args, uint32_t traits)
{
    struct call call = { .queue = queue, .op = op };
    if (queue->recording)
        return call_record(queue, op, args, traits);
    if (traits & TRAIT_EMPTY) {
        count(&queue->calls[op].calls, 1);
        return HW_OK;
    }
    enum hw_status status;
    if (traits & TRAIT_HOST && cost_route(queue, op, args, &status))
        return status;
    memcpy(&call.whole, args, op_rows[op].size);
    status = traits & queue->cold_traits[op] & ~(uint32_t)TRAIT_ALWAYS
                 ? device_computes(queue->device, op, args, &call.whole)
                 : args_known(queue->device->plugin, op, args);
    if (!status) {
        if ((status = call_routed(&call, args)))
            /* After an error, the caller's host memory must not be in use any more. */
            queue_drain(queue);
    } else if (status == HW_UNSUPPORTED)
        status = fall_back(queue, op, args, status);
    else
        fail_in(status, "%s on %s: ", hw_op_name(op), queue->device->name);
    for (uint32_t i = 0; i < MAX_OPERANDS; i++)
        scratch_give(queue, call.scratch[i]);
    return status ? status : settle_synchronous(queue);
}
