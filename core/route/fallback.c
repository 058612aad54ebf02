/* SPDX-License-Identifier: MIT */
/* fallback.c - if the queue's device does not support an op, the next device in the
 * context's order that supports it computes it. Operands are copied there and back, synchronously.
 * A fallback is never silent: it is counted, logged once per op, dtypes and device, and
 * listed by hw_explain(). */
#define _POSIX_C_SOURCE 200809L
#include "route/fallback.h"

#include "base/message.h"
#include "call/layout.h"
#include "call/queue.h"
#include "memory/device.h"
#include "memory/transfer.h"
#include "route/op_state.h"
#include "route/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reports ---- */

struct fallback {
    struct fallback *next;
    struct hw_device *from, *to;
    uint32_t op;
    uint64_t calls;
    char dtypes[DTYPES_SIZE];
    char why[];
};

/* Finds or creates the note of this case; NULL if out of memory. The caller holds the context's
 * lock. */
static struct fallback *note_of(struct hw_queue *queue, struct hw_device *to, uint32_t op,
                                const char *dtypes, const char *why, bool *fresh)
{
    struct hw_context *context = queue->device->context;
    struct fallback *note = context->fallbacks;
    while (note && (note->from != queue->device || note->to != to || note->op != op ||
                    strcmp(note->dtypes, dtypes) != 0))
        note = note->next;
    *fresh = !note;
    if (note || !(note = calloc(1, sizeof *note + strlen(why) + 1)))
        return note;
    note->from = queue->device;
    note->to = to;
    note->op = op;
    memcpy(note->dtypes, dtypes, sizeof note->dtypes);
    memcpy(note->why, why, strlen(why) + 1);
    note->next = context->fallbacks;
    context->fallbacks = note;
    return note;
}

static void note_report(struct hw_queue *queue, struct hw_device *to, uint32_t op,
                        const void *args, const char *why)
{
    struct hw_context *context = queue->device->context;
    const bool warn = context->settings.fallback == FALLBACK_WARN;
    char dtypes[DTYPES_SIZE] = "";
    bool fresh;
    write_dtypes(op, args, dtypes);
    pthread_mutex_lock(&context->lock);
    struct fallback *note = note_of(queue, to, op, dtypes, why, &fresh);
    if (note)
        note->calls++;
    pthread_mutex_unlock(&context->lock);
    if (fresh)
        log_line(&context->log, warn ? HW_LOG_WARN : HW_LOG_INFO,
                 "%s (%s) runs on %s instead of %s, through host memory: %s",
                 hw_op_name(op), dtypes, to->name, queue->device->name, why);
}

void fallback_notes_free(struct hw_context *context)
{
    while (context->fallbacks) {
        struct fallback *note = context->fallbacks;
        context->fallbacks = note->next;
        free(note);
    }
}

void explain_fallbacks(struct json *json, struct hw_context *context)
{
    json_open(json, "fallbacks", '[');
    for (const struct fallback *note = context->fallbacks; note; note = note->next) {
        json_open(json, NULL, '{');
        json_string(json, "op", hw_op_name(note->op));
        json_string(json, "dtypes", note->dtypes);
        json_string(json, "device", note->from->name);
        json_string(json, "computed_by", note->to->name);
        json_string(json, "why", note->why);
        json_number(json, "calls", note->calls);
        json_close(json, '}');
    }
    json_close(json, ']');
    explain_rejected(json, context);
}

/* ---- moving operands to the host and back ---- */

struct detour {
    struct hw_queue *queue;
    uint32_t op;
    const void *given;          /* the caller's op */
    const char *why;            /* the queue's device does not compute it */
    union any_op args;          /* with host tensors */
    bool remote[MAX_OPERANDS];  /* the operand must be copied to the host */
    bool fetched;               /* these operands have been copied */
    void *memory[MAX_OPERANDS]; /* host memory for these operands */
    uint64_t bytes;             /* copied so far */
    bool refused;               /* the latest device did not take the op; another may */
    char unopened[512]; /* why a device that might compute the op could not be used */
    bool no_memory;     /* memory ran out on a device that might have computed the op */
};

/* Describes the operands as host tensors: in place if the host can access them, otherwise
 * contiguous in memory that is allocated later. */
static enum hw_status detour_begin(struct detour *d)
{
    const struct op_row *row = &op_rows[d->op];
    memcpy(&d->args, d->given, row->size);
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct hw_tensor *t = operand_at(d->given, &row->operands[i]);
        struct hw_tensor *host = operand_in(&d->args, &row->operands[i]);
        if (t->dtype == HW_NONE || host_view(t, host))
            continue;
        if (t->layout)
            return fail(HW_UNSUPPORTED, "%s is packed, so only its device can read it",
                        row->operands[i].name);
        if (dense_bytes(t) >= SIZE_MAX)
            return fail(HW_NO_MEMORY, "%s: %s is too large to move to the host",
                        hw_op_name(d->op), row->operands[i].name);
        *host = dense_at(t, NULL, NULL);
        d->remote[i] = true;
    }
    return HW_OK;
}

static void detour_end(struct detour *d)
{
    for (uint32_t i = 0; i < MAX_OPERANDS; i++)
        free(d->memory[i]);
}

static enum hw_status detour_fetch_one(struct detour *d, const struct operand_row *operand,
                                       void **memory)
{
    struct hw_tensor *host = operand_in(&d->args, operand);
    const uint64_t bytes = hw_tensor_bytes(host);
    if (!(*memory = host->data = malloc((size_t)bytes + 1)))
        return fail(HW_NO_MEMORY, "%s: out of memory for moving %s to the host",
                    hw_op_name(d->op), operand->name);
    if (!role_reads(operand->role))
        return HW_OK;
    d->bytes += bytes;
    return queue_move(d->queue, host, operand_at(d->given, operand));
}

/* Copies the operands, only once: before the first device computes. */
static enum hw_status detour_fetch(struct detour *d)
{
    const struct op_row *row = &op_rows[d->op];
    enum hw_status status = HW_OK;
    if (d->fetched)
        return HW_OK;
    d->fetched = true;
    for (uint32_t i = 0; i < row->operand_count && !status; i++)
        if (d->remote[i])
            status = detour_fetch_one(d, &row->operands[i], &d->memory[i]);
    /* Waits for the copies and for earlier work. */
    return status ? status : queue_settle(d->queue);
}

static enum hw_status detour_return(struct detour *d)
{
    const struct op_row *row = &op_rows[d->op];
    bool moved = false;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        if (!d->remote[i] || !role_writes(row->operands[i].role))
            continue;
        const struct hw_tensor *host = operand_at(&d->args, &row->operands[i]);
        const enum hw_status status =
            queue_move(d->queue, operand_at(d->given, &row->operands[i]), host);
        if (status)
            return status;
        d->bytes += hw_tensor_bytes(host);
        moved = true;
    }
    return moved ? queue_settle(d->queue) : HW_OK;
}

/* ---- the next device ---- */

/* Whether two operands begin at the same byte, as an address or as a buffer and an offset.
 * The check has made sure that operands do not overlap in any other way. */
static bool operands_alias(const struct hw_tensor *a, const struct hw_tensor *b)
{
    struct hw_tensor x, y;
    if (host_view(a, &x) && host_view(b, &y))
        return hw_tensor_address(&x) == hw_tensor_address(&y);
    return a->buffer == b->buffer && a->offset == b->offset;
}

/* After a failed submission the op may be retried on another device, unless it writes an
 * operand that it also reads. */
bool may_retry(uint32_t op, const void *args)
{
    const struct op_row *row = &op_rows[op];
    for (uint32_t i = 0; i < row->operand_count; i++) {
        if (row->operands[i].role == HW_ROLE_INOUT)
            return false;
        const struct hw_tensor *y = operand_at(args, &row->operands[i]);
        for (uint32_t k = 0; k < row->operand_count && role_writes(row->operands[i].role);
             k++)
            if (k != i && operands_alias(y, operand_at(args, &row->operands[k])))
                return false;
    }
    return true;
}

/* Keeps the reason why a device that might have computed the op is not used. */
static void detour_keep_unused(struct detour *d, enum hw_status status)
{
    if (!d->unopened[0])
        snprintf(d->unopened, sizeof d->unopened, "%s", hw_message());
    d->no_memory |= status == HW_NO_MEMORY;
}

/* Whether another device says that it computes the op. Sets *helper to a queue on it. */
static bool device_can(struct detour *d, struct hw_device *device, struct hw_queue **helper)
{
    union any_op as;
    enum hw_status status = queue_helper(d->queue, device, helper);
    if (status)
        detour_keep_unused(d, status);
    else if ((status = device_computes(device, d->op, &d->args, &as)) == HW_NO_MEMORY)
        detour_keep_unused(d, status);
    return !status;
}

/* The first device behind this one in the context's order that says that it computes the op, with
 * a queue on it; or NULL. So a queue on the last device never wakes another device. */
static struct hw_device *detour_device(struct detour *d, const struct hw_device *device,
                                       struct hw_queue **helper)
{
    const struct catalog *found = catalog_of(d->queue->device->context);
    uint32_t i = device_position(found, device) + 1;
    while (i < found->order_count && !device_can(d, found->order[i], helper))
        i++;
    return i < found->order_count ? found->order[i] : NULL;
}

static enum hw_status detour_compute(struct detour *d, struct hw_queue *helper)
{
    struct call_counts *counts = &d->queue->calls[d->op];
    enum hw_status status = detour_fetch(d);
    if (status)
        return status;
    if ((status = hw_submit(helper, d->op, &d->args, op_rows[d->op].size))) {
        if (status == HW_NO_MEMORY)
            detour_keep_unused(d, status);
        queue_drain(helper); /* the device may be reading operands already */
        d->refused = status == HW_UNSUPPORTED ||
                     (status != HW_INVALID && may_retry(d->op, &d->args));
        return status;
    }
    if ((status = queue_settle(helper)) || (status = detour_return(d)))
        return status;
    count(&counts->calls, 1);
    count(&counts->fallbacks, 1);
    count(&counts->fallback_bytes, d->bytes);
    note_report(d->queue, helper->device, d->op, d->given, d->why);
    return HW_OK;
}

/* A device returned `status`, with the thread's message: lets those behind it compute. If one of
 * them has computed the op, the device is demoted, provided that the status says so. */
static enum hw_status detour_pass_on(struct detour *d, struct hw_device *device,
                                     enum hw_status status)
{
    char why[512];
    struct hw_queue *helper;
    snprintf(why, sizeof why, "%s", hw_message());
    struct hw_device *next = detour_device(d, device, &helper);
    d->refused = false;
    enum hw_status result = next ? detour_compute(d, helper) : HW_UNSUPPORTED;
    if (d->refused)
        result = detour_pass_on(d, next, result);
    if (!result && demotes(status))
        demote(&(struct failure){
            .device = device, .op = d->op, .args = d->given, .why = why });
    return result;
}

/* Whether there is a device after this one that may be tried. */
static bool may_detour(const struct hw_queue *queue)
{
    const struct hw_context *context = queue->device->context;
    const struct catalog *found = catalog_of(context);
    return !queue->is_helper && context->settings.fallback != FALLBACK_ERROR &&
           device_position(found, queue->device) + 1 < found->order_count;
}

/* Fails. The message has the op, `why`, and the reason why no other device computes it.
 * `unopened` is the error of a device that could not be used, or "". */
static enum hw_status fallback_refuse(const struct hw_queue *queue, uint32_t op,
                                      const void *args, enum hw_status status,
                                      const char *why, const char *unopened)
{
    const char *others = "no other device computes it";
    char dtypes[DTYPES_SIZE] = "";
    if (queue->device->context->settings.fallback == FALLBACK_ERROR)
        others = "HW_FALLBACK=error allows no other device";
    else if (!may_detour(queue))
        others = "no other device is left to compute it";
    write_dtypes(op, args, dtypes);
    return fail(status, "%s (%s) on %s: %s; %s%s%s", hw_op_name(op), dtypes,
                queue->device->name, why, others, *unopened ? ": " : "", unopened);
}

enum hw_status may_fall_back(const struct hw_queue *queue, uint32_t op, const void *args,
                             enum hw_status status)
{
    return may_detour(queue) ? HW_OK
                             : fallback_refuse(queue, op, args, status, hw_message(), "");
}

enum hw_status fall_back(struct hw_queue *queue, uint32_t op, const void *args,
                         enum hw_status status)
{
    char why[512];
    struct detour d = { .queue = queue, .op = op, .given = args, .why = why };
    snprintf(why, sizeof why, "%s", hw_message());
    if (!may_detour(queue))
        return fallback_refuse(queue, op, args, status, why, "");
    enum hw_status moved = detour_begin(&d);
    if (!moved)
        moved = detour_pass_on(&d, queue->device, status);
    if (moved && d.fetched)
        queue_drain(queue); /* waits for copies that were queued earlier */
    detour_end(&d);
    if (status == HW_UNSUPPORTED && d.no_memory)
        status = HW_NO_MEMORY;
    /* keeps a status other than HW_UNSUPPORTED: the output may have been written */
    return moved == HW_UNSUPPORTED
               ? fallback_refuse(queue, op, args, status, why, d.unopened)
               : moved;
}

struct hw_device *fallback_device(struct hw_queue *queue, uint32_t op, const void *args)
{
    struct detour d = { .queue = queue, .op = op, .given = args };
    struct hw_queue *helper;
    return may_detour(queue) && !detour_begin(&d)
               ? detour_device(&d, queue->device, &helper)
               : NULL;
}

/* The inputs may be overwritten, so this call fails. Later calls may run on another device. */
static enum hw_status fail_in_place(struct hw_queue *queue, uint32_t op, const void *args,
                                    enum hw_status status)
{
    char why[512];
    snprintf(why, sizeof why, "%s", hw_message());
    const struct hw_device *next = fallback_device(queue, op, args);
    if (!next)
        return fail(status, "%s on %s: %s", hw_op_name(op), queue->device->name, why);
    demote(
        &(struct failure){ .device = queue->device, .op = op, .args = args, .why = why });
    return fail(status,
                "%s on %s: %s; it was not computed elsewhere, because an output is also an "
                "input, but from now on %s computes this op",
                hw_op_name(op), queue->device->name, why, next->name);
}

enum hw_status submit_failed(struct hw_queue *queue, uint32_t op, const void *args,
                             int32_t answer)
{
    enum hw_status status = device_result(queue->device, answer);
    if (status == HW_UNSUPPORTED)
        return fall_back(queue, op, args, status);
    if (demotes(status))
        count(&queue->calls[op].failed, 1);
    if (!demotes(status) || queue->is_helper)
        return fail_in(status, "%s on %s: ", hw_op_name(op), queue->device->name);
    return may_retry(op, args) ? fall_back(queue, op, args, status)
                               : fail_in_place(queue, op, args, status);
}
