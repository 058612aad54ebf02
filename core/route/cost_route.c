/* SPDX-License-Identifier: MIT */
/* cost_route.c - the CPU plugin computes a call whose operands are all in host memory that the
 * queue's device cannot read, if that is expected to be faster than copying the operands to the
 * device and back. This applies only to queues of a device that the library itself chose. Such
 * calls are counted, and hw_explain() shows them. docs/routing.md has the rules, cost.c the
 * estimate. */
#include "route/cost_route.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/queue.h"
#include "memory/device.h"
#include "route/cost.h"
#include "route/fallback.h"
#include "route/stage.h"
#include "route/support.h"

#include <string.h>

/* ---- which queues ---- */

static const char *why_stays(const struct hw_queue *queue, bool imported)
{
    const struct hw_device *device = queue->device;
    const struct hw_context *context = device->context;
    const uint32_t chosen = atomic_load(&device->chosen);
    if (context->settings.fallback == FALLBACK_ERROR)
        return "HW_FALLBACK=error allows no other device";
    if (queue->host_tensors)
        return "the device reads host memory itself";
    if (imported)
        return "the application made the queue itself (hw_queue_import)";
    if (chosen & CHOSEN_BY_NAME)
        return "the device is named: by HW_BACKENDS, HW_REQUIRE or the application";
    if (!(chosen & CHOSEN_BY_DEFAULT))
        return "the application chose the device: it is not from hw_device_default()";
    if (!context->reference)
        return "the CPU plugin of this build is not selected";
    const struct catalog *found = catalog_of(context);
    if (device_position(found, context->reference) < device_position(found, device))
        return "the CPU plugin is not behind the device in HW_BACKENDS";
    return NULL;
}

void cost_route_begin(struct hw_queue *queue, bool imported)
{
    queue->stays = why_stays(queue, imported);
}

/* ---- whether the queue has work outstanding ---- */

static uint64_t submitted(const struct hw_queue *queue)
{
    uint64_t calls = 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        calls += atomic_load_explicit(&queue->calls[op].calls, memory_order_relaxed);
    return calls;
}

void cost_route_settled(struct hw_queue *queue)
{
    queue->settled = submitted(queue);
}

static bool is_busy(const struct hw_queue *queue)
{
    return queue->pending || queue->busy || submitted(queue) != queue->settled;
}

/* Whether the call reads or overwrites host memory that the queue still has to write. Staging would
 * have to wait for the queue as well. */
static bool must_wait(const struct hw_queue *queue, uint32_t op, const void *args)
{
    bool must = false;
    for (uint32_t i = 0; i < op_rows[op].operand_count && !must; i++) {
        const struct hw_tensor *t = operand_at(args, &op_rows[op].operands[i]);
        must = t->dtype != HW_NONE && pending_overlaps(queue, t);
    }
    return must;
}

/* ---- which calls ---- */

static bool all_in_host_memory(uint32_t op, const void *args)
{
    bool all = true;
    for (uint32_t i = 0; i < op_rows[op].operand_count && all; i++)
        all = !operand_at(args, &op_rows[op].operands[i])->buffer;
    return all;
}

/* Why the queue's device computes the call; NULL: the CPU does. Opens the CPU's device if nothing
 * else speaks against it. */
static const char *why_own(const struct hw_queue *queue, uint32_t op, const void *args)
{
    struct hw_device *cpu = queue->device->context->reference;
    union any_op as;
    if (!all_in_host_memory(op, args))
        return "an operand is in a buffer, and buffers stay where they are";
    if (queue->recording || queue->in_graph)
        return "graphs are computed by the device that they are recorded for";
    if (!cost_favours_cpu(cost_of(op, args)))
        return "the estimates do not show that the CPU is twice as fast";
    if (is_busy(queue) && !must_wait(queue, op, args))
        return "the queue has work outstanding, for which the call does not wait";
    if (device_wake(cpu) || device_computes(cpu, op, args, &as))
        return "the CPU plugin does not compute it";
    return NULL;
}

/* ---- a call ---- */

/* Computes the call on the CPU. */
static enum hw_status compute_there(struct hw_queue *queue, struct hw_queue *helper,
                                    uint32_t op, const void *args)
{
    struct call_counts *counts = &queue->calls[op];
    enum hw_status status = hw_submit(helper, op, args, op_rows[op].size);
    if (status) {
        queue_drain(helper);
        return status;
    }
    if ((status = queue_settle(helper)))
        return status;
    count(&counts->calls, 1);
    count(&counts->routed, 1);
    queue->settled++;
    return HW_OK;
}

bool cost_route(struct hw_queue *queue, uint32_t op, const void *args,
                enum hw_status *status)
{
    struct hw_device *cpu = queue->device->context->reference;
    struct hw_queue *helper;
    if (queue->stays || why_own(queue, op, args) || queue_helper(queue, cpu, &helper))
        return false;
    /* Earlier work may use the operands in ways that are not counted. */
    if ((*status = queue_settle(queue)))
        return true;
    *status = compute_there(queue, helper, op, args);
    if (!*status || *status == HW_INVALID)
        return true;
    /* Nothing was written, or no input was: the queue's device may compute the call. */
    if (*status == HW_UNSUPPORTED || may_retry(op, args))
        return false;
    fail_in(*status, "%s on %s, which is expected to be faster than %s: ", hw_op_name(op),
            cpu->name, queue->device->name);
    return true;
}

/* ---- for applications ---- */

/* Sets the device that computes the call, and the reason. */
static void decide(struct hw_queue *queue, uint32_t op, const void *args,
                   struct hw_route_info *info)
{
    union any_op as;
    info->device = queue->device;
    if (device_computes(queue->device, op, args, &as)) {
        info->device = fallback_device(queue, op, args);
        info->why = "the queue's device does not compute it, so it falls back";
    } else if (queue->stays) {
        info->why = queue->stays;
    } else if (!(info->why = why_own(queue, op, args))) {
        info->device = queue->device->context->reference;
        info->why = "the CPU is expected to be faster than moving the operands";
    }
}

enum hw_status hw_queue_route(struct hw_queue *queue, uint32_t op, const void *args,
                              size_t size, struct hw_route_info *info)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_queue_route");
    if (status)
        return status;
    REQUIRE(info);
    if ((status = check_size(__func__, "info", info, 2 * sizeof(uint32_t))) ||
        !(args = args_of_size(op, args, size, &copy, &status)))
        return status;
    struct check check = { .device = queue->device, .impl = queue->device_impl, .op = op };
    if ((status = check_call(args, &check)))
        return status;
    const struct cost cost = cost_of(op, args);
    struct hw_route_info now = { .own = cost.own, .cpu = cost.cpu, .moved = cost.moved };
    decide(queue, op, args, &now);
    now.size = info->size < sizeof now ? info->size : (uint32_t)sizeof now;
    memcpy(info, &now, now.size);
    return HW_OK;
}
