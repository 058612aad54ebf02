/* SPDX-License-Identifier: MIT */
/* shadow.c - HW_SHADOW=1/N: hw_shadow.so compares one in N calls of an op on a queue with the CPU
 * plugin (judge.h). An op with a wrong result is not tried again on the device: see op_state.h.
 *
 * A queue that compares gets its own submit function when it is opened, so other queues need no
 * check for HW_SHADOW. */
#include "route/shadow.h"

#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/queue.h"
#include "memory/transfer.h"
#include "route/op_state.h"

#include <stdlib.h>

struct shadow {
    uint32_t every;
    uint64_t calls[HW_OP_COUNT]; /* the number of calls so far */
};

enum hw_status shadow_begin(struct hw_queue *queue)
{
    const struct hw_context *context = queue->device->context;
    if (!context->settings.shadow || queue->device == context->reference)
        return HW_OK;
    if (!(queue->shadow = calloc(1, sizeof *queue->shadow)))
        return fail(HW_NO_MEMORY, "out of memory for a queue");
    queue->shadow->every = context->settings.shadow;
    return HW_OK;
}

void shadow_end(struct hw_queue *queue)
{
    free(queue->shadow);
}

/* Whether to compare this call: the first call of an op, then one call in each round of `every`
 * calls. Its place in the round varies, because models repeat their calls in a fixed order. */
static bool is_due(struct shadow *shadow, uint32_t op)
{
    const uint64_t n = shadow->calls[op]++, round = n / shadow->every;
    uint64_t mix = (round * HW_OP_COUNT + op) * UINT64_C(0x9E3779B97F4A7C15);
    mix = (mix ^ mix >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> 32;
    return n % shadow->every == (round ? mix % shadow->every : 0);
}

/* ---- for hw_shadow.so ---- */

static enum hw_status shadow_move(struct hw_queue *queue, const struct hw_tensor *dst,
                                  const struct hw_tensor *src)
{
    struct hw_tensor to, from;
    if (host_view(dst, &to) && host_view(src, &from)) {
        host_move(&to, &from);
        return HW_OK;
    }
    const enum hw_status status = queue_move(queue, dst, src);
    return status ? status : queue_settle(queue);
}

static enum hw_status shadow_compute(struct hw_queue *queue, uint32_t op, const void *args)
{
    struct hw_queue *helper;
    enum hw_status status = queue_helper(queue, queue->device->context->reference, &helper);
    if (!status)
        status = hw_submit(helper, op, args, op_rows[op].size);
    return status ? status : queue_settle(helper);
}

/* ---- a comparison ---- */

/* Withdraws the op, and gives the caller the right result. */
static enum hw_status shadow_accuse(const struct shadow_call *call,
                                    struct shadow_copies *copies, const char *why)
{
    struct hw_device *device = call->queue->device;
    struct call_counts *counts = &call->queue->calls[call->op];
    count(&counts->wrong, 1);
    demote(&(struct failure){
        .device = device, .op = call->op, .args = call->args, .why = why, .wrong = true });
    if (device->context->settings.fallback == FALLBACK_ERROR)
        return fail(HW_INTERNAL, "%s on %s computes wrong results: %s",
                    hw_op_name(call->op), device->name, why);
    const enum hw_status status = device->context->shadow.correct(copies);
    if (!status)
        count(&counts->fallbacks, 1);
    return status;
}

/* Compares the results after the device has computed the op. */
static enum hw_status shadow_compare(const struct shadow_call *call,
                                     struct shadow_copies *copies)
{
    char why[1024] = "";
    const enum shadow_verdict verdict =
        call->queue->device->context->shadow.judge(copies, why, sizeof why);
    if (verdict == SHADOW_UNKNOWN)
        return HW_OK;
    count(&call->queue->calls[call->op].compared, 1);
    return verdict == SHADOW_WRONG ? shadow_accuse(call, copies, why) : HW_OK;
}

/* ---- calls ---- */

static enum hw_status submit_plain(struct hw_queue *queue, uint32_t op, const void *args,
                                   size_t size)
{
    const bool always = queue->recording || queue->flags & HW_QUEUE_SYNCHRONOUS;
    return submit_for(op, !always)(queue, op, args, size);
}

/* Whether the call can be compared: it is valid and computes something on this device. */
static bool can_compare(struct hw_queue *queue, uint32_t op, const void *args)
{
    struct check check = { .device = queue->device, .op = op };
    return !check_call(args, &check) && !(check.traits & TRAIT_EMPTY);
}

static enum hw_status submit_compared(struct hw_queue *queue, uint32_t op, const void *args)
{
    const struct hw_context *context = queue->device->context;
    const struct call_counts *counts = &queue->calls[op];
    const uint64_t elsewhere = counts->fallbacks + counts->routed;
    const struct shadow_call call = { .op = op,
                                      .precision = (uint32_t)context->settings.precision,
                                      .args = args,
                                      .queue = queue,
                                      .move = shadow_move,
                                      .compute = shadow_compute };
    struct shadow_copies *copies = queue_settle(queue) ? NULL
                                                       : context->shadow.begin(&call);
    enum hw_status status = submit_plain(queue, op, args, op_rows[op].size);
    /* The next wait returns an error of the work itself. */
    if (!status && copies && counts->fallbacks + counts->routed == elsewhere &&
        !queue_settle(queue))
        status = shadow_compare(&call, copies);
    context->shadow.end(copies);
    return status;
}

enum hw_status shadow_submit(struct hw_queue *queue, uint32_t op, const void *args,
                             size_t size)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_submit");
    if (status || queue->recording || !is_due(queue->shadow, op))
        return status ? status : submit_plain(queue, op, args, size);
    if ((status = args_resize(op, &args, size, &copy)))
        return status;
    return can_compare(queue, op, args) ? submit_compared(queue, op, args)
                                        : submit_plain(queue, op, args, op_rows[op].size);
}
