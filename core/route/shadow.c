/* SPDX-License-Identifier: MIT */
/* shadow.c - HW_SHADOW=1/N: the CPU plugin computes one in N calls of an op on a queue as well, on
 * copies of the operands, and hw_shadow.so judges the device's result (judge.h). An op with a
 * wrong result is not tried again on the device: see op_state.h.
 *
 * A queue that compares gets its own submit function when it is opened, so other queues need no
 * check for HW_SHADOW. */
#include "route/shadow.h"

#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/layout.h"
#include "call/queue.h"
#include "judge.h"
#include "memory/device.h"
#include "memory/transfer.h"
#include "route/op_state.h"

#include <build_stamp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shadow {
    uint32_t every;
    uint64_t calls[HW_OP_COUNT]; /* the number of calls so far */
};

enum hw_status shadow_begin(struct hw_queue *queue)
{
    const struct hw_context *context = queue->device->context;
    if (!context->settings.shadow || queue->device == context->judge)
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

/* ---- a comparison ---- */

struct comparison {
    struct hw_queue *queue;
    struct hw_queue *judge; /* a helper queue on the CPU */
    uint32_t op;
    const void *args;               /* the caller's */
    union any_op right;             /* with copies of the operands, for the judge */
    void *memory[3 * MAX_OPERANDS]; /* the memory of all copies */
    uint32_t count;                 /* of these */
    struct shadow_call call;        /* for the judge of hw_shadow.so */
};

/* Copies the elements, contiguous, to host memory: NULL on an error. */
static void *host_copy(struct comparison *c, const struct hw_tensor *t, bool fill,
                       struct hw_tensor *host)
{
    struct hw_tensor view;
    uint64_t bytes;
    *host = *t;
    if (!make_dense(host, NULL, &bytes) || bytes >= SIZE_MAX)
        return NULL;
    void *memory = c->memory[c->count++] = calloc(1, (size_t)bytes + 1);
    host->buffer = NULL;
    host->data = memory;
    host->offset = 0;
    if (!memory || !fill)
        return memory;
    if (host_view(t, &view))
        host_move(host, &view);
    else if (queue_move(c->queue, host, t) || queue_settle(c->queue))
        return NULL;
    return memory;
}

/* Copies the inputs before the device computes the op, perhaps in place. */
static bool take_inputs(struct comparison *c)
{
    const struct op_row *row = &op_rows[c->op];
    const struct hw_context *context = c->queue->device->context;
    memcpy(&c->right, c->args, row->size);
    if (queue_helper(c->queue, context->judge, &c->judge) || queue_settle(c->queue))
        return false;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct operand_row *operand = &row->operands[i];
        const struct hw_tensor *t = operand_at(c->args, operand);
        const bool reads = role_reads(operand->role), writes = role_writes(operand->role);
        struct hw_tensor *right = operand_in(&c->right, operand), before;
        if (t->dtype == HW_NONE)
            continue;
        if (t->layout || (reads && !(c->call.before[i] = host_copy(c, t, true, &before))))
            return false;
        if (!writes)
            *right = before;
        else if (!(c->call.expected[i] = host_copy(c, t, reads, right)))
            return false;
    }
    return true;
}

/* Takes the outputs of the device, and computes those of the CPU. */
static bool take_outputs(struct comparison *c)
{
    const struct op_row *row = &op_rows[c->op];
    struct hw_tensor host;
    for (uint32_t i = 0; i < row->operand_count; i++)
        if (c->call.expected[i] &&
            !(c->call.after[i] = host_copy(c, operand_at(c->args, &row->operands[i]), true,
                                           &host)))
            return false;
    return !hw_submit(c->judge, c->op, &c->right, row->size) && !queue_settle(c->judge);
}

/* ---- a wrong result ---- */

/* Gives the caller the right result instead. */
static enum hw_status correct(struct comparison *c)
{
    const struct op_row *row = &op_rows[c->op];
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct hw_tensor *t = operand_at(c->args, &row->operands[i]);
        const struct hw_tensor *right = operand_at(&c->right, &row->operands[i]);
        struct hw_tensor view;
        if (t->dtype == HW_NONE || !role_writes(row->operands[i].role))
            continue;
        if (host_view(t, &view)) {
            host_move(&view, right);
            continue;
        }
        const enum hw_status status = queue_move(c->queue, t, right);
        if (status)
            return status;
    }
    const enum hw_status status = queue_settle(c->queue);
    if (!status)
        count(&c->queue->calls[c->op].fallbacks, 1);
    return status;
}

/* "a f32[4,8] c f32[4,2]" */
static void write_shapes(const struct comparison *c, char *text, size_t size)
{
    const struct op_row *row = &op_rows[c->op];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < row->operand_count && used < size; i++) {
        const struct hw_tensor *t = operand_at(c->args, &row->operands[i]);
        char shape[DESCRIBE_SIZE];
        if (t->dtype != HW_NONE)
            used += (size_t)snprintf(text + used, size - used, "%s%s %s", used ? ", " : "",
                                     row->operands[i].name, describe(t, shape));
    }
}

static enum hw_status accuse(struct comparison *c, const char *element)
{
    struct hw_device *device = c->queue->device;
    char shapes[512], why[1024];
    write_shapes(c, shapes, sizeof shapes);
    snprintf(why, sizeof why, "with %s, %s (HW_SHADOW)", shapes, element);
    count(&c->queue->calls[c->op].wrong, 1);
    demote(&(struct failure){
        .device = device, .op = c->op, .args = c->args, .why = why, .wrong = true });
    if (device->context->settings.fallback == FALLBACK_ERROR)
        return fail(HW_INTERNAL, "%s on %s computes wrong results: %s", hw_op_name(c->op),
                    device->name, why);
    return correct(c);
}

/* Compares the results after the device has computed the op. */
static enum hw_status compare(struct comparison *c)
{
    const struct hw_context *context = c->queue->device->context;
    char element[400] = "";
    if (!take_outputs(c))
        return HW_OK; /* the CPU cannot compute it */
    c->call.stamp = HW_BUILD_STAMP;
    c->call.op = c->op;
    c->call.precision = (uint32_t)context->settings.precision;
    c->call.args = c->args;
    const int32_t verdict = context->shadow(&c->call, element, sizeof element);
    if (verdict == SHADOW_UNKNOWN)
        return HW_OK;
    count(&c->queue->calls[c->op].compared, 1);
    return verdict == SHADOW_WRONG ? accuse(c, element) : HW_OK;
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
    struct check check = { .device = queue->device, .impl = queue->device_impl, .op = op };
    return !check_call(args, &check) && !(check.traits & TRAIT_EMPTY);
}

static enum hw_status submit_compared(struct hw_queue *queue, uint32_t op, const void *args)
{
    struct comparison c = { .queue = queue, .op = op, .args = args };
    const struct call_counts *counts = &queue->calls[op];
    const uint64_t elsewhere = counts->fallbacks + counts->routed;
    const bool ready = take_inputs(&c);
    enum hw_status status = submit_plain(queue, op, args, op_rows[op].size);
    /* The next wait returns an error of the work itself. */
    if (!status && ready && counts->fallbacks + counts->routed == elsewhere &&
        !queue_settle(queue))
        status = compare(&c);
    while (c.count)
        free(c.memory[--c.count]);
    return status;
}

enum hw_status shadow_submit(struct hw_queue *queue, uint32_t op, const void *args,
                             size_t size)
{
    union any_op copy;
    enum hw_status status = queue_ready(queue, "hw_submit");
    if (status || queue->recording || !is_due(queue->shadow, op))
        return status ? status : submit_plain(queue, op, args, size);
    if (!(args = args_of_size(op, args, size, &copy, &status)))
        return status;
    return can_compare(queue, op, args) ? submit_compared(queue, op, args)
                                        : submit_plain(queue, op, args, op_rows[op].size);
}
