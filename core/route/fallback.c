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

static void report_once(struct hw_queue *queue, struct hw_device *to, uint32_t op,
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

/* A device, other than the queue's, on which the op failed. */
struct failed {
    struct failed *next;
    struct hw_device *device;
    char why[];
};

struct detour {
    struct hw_queue *queue;
    uint32_t op;
    union any_op args;          /* with host tensors */
    bool remote[MAX_OPERANDS];  /* the operand must be copied to the host */
    bool fetched;               /* these operands have been copied */
    void *memory[MAX_OPERANDS]; /* host memory for these operands */
    uint64_t bytes;             /* copied so far */
    char unopened[512]; /* why a device that might compute the op could not be used */
    bool no_memory;     /* memory ran out on a device that might have computed the op */
    struct failed *failed;
};

/* Describes the operands as host tensors: in place if the host can access them, otherwise
 * contiguous in memory that is allocated later. */
static enum hw_status describe_all(struct detour *d, const void *args)
{
    const struct op_row *row = &op_rows[d->op];
    memcpy(&d->args, args, row->size);
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct hw_tensor *t = operand_at(args, &row->operands[i]);
        struct hw_tensor *host = operand_in(&d->args, &row->operands[i]);
        uint64_t bytes;
        if (t->dtype == HW_NONE || host_view(t, host))
            continue;
        if (t->layout)
            return fail(HW_UNSUPPORTED, "%s is packed, so only its device can read it",
                        row->operands[i].name);
        if (!make_dense(host, t, &bytes) || bytes >= SIZE_MAX)
            return fail(HW_NO_MEMORY, "%s: %s is too large to move to the host",
                        hw_op_name(d->op), row->operands[i].name);
        host->buffer = NULL;
        host->data = NULL;
        host->offset = 0;
        d->remote[i] = true;
    }
    return HW_OK;
}

static enum hw_status fetch(struct detour *d, uint32_t i, const struct hw_tensor *t)
{
    const struct operand_row *operand = &op_rows[d->op].operands[i];
    struct hw_tensor *host = operand_in(&d->args, operand);
    const uint64_t bytes = hw_tensor_bytes(host);
    if (!(d->memory[i] = malloc((size_t)bytes + 1)))
        return fail(HW_NO_MEMORY, "%s: out of memory for moving %s to the host",
                    hw_op_name(d->op), operand->name);
    host->data = d->memory[i];
    if (!role_reads(operand->role))
        return HW_OK;
    d->bytes += bytes;
    return queue_move(d->queue, host, t);
}

/* Copies the operands, only once: before the first device computes. */
static enum hw_status fetch_all(struct detour *d, const void *args)
{
    const struct op_row *row = &op_rows[d->op];
    enum hw_status status = HW_OK;
    if (d->fetched)
        return HW_OK;
    d->fetched = true;
    for (uint32_t i = 0; i < row->operand_count && !status; i++)
        if (d->remote[i])
            status = fetch(d, i, operand_at(args, &row->operands[i]));
    /* Waits for the copies and for earlier work. */
    return status ? status : queue_settle(d->queue);
}

static enum hw_status put_back(struct detour *d, const void *args)
{
    const struct op_row *row = &op_rows[d->op];
    bool moved = false;
    for (uint32_t i = 0; i < row->operand_count; i++) {
        if (!d->remote[i] || !role_writes(row->operands[i].role))
            continue;
        const struct hw_tensor *host = operand_at(&d->args, &row->operands[i]);
        enum hw_status status = queue_move(d->queue, operand_at(args, &row->operands[i]),
                                           host);
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
static bool same_place(const struct hw_tensor *a, const struct hw_tensor *b)
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
            if (k != i && same_place(y, operand_at(args, &row->operands[k])))
                return false;
    }
    return true;
}

/* Whether another device may be tried after this status. */
static bool passes_on(const struct detour *d, enum hw_status status)
{
    return status == HW_UNSUPPORTED || (status != HW_INVALID && may_retry(d->op, &d->args));
}

/* Keeps the reason why a device that might have computed the op is not used. */
static void keep_unused(struct detour *d, enum hw_status status)
{
    if (!d->unopened[0])
        snprintf(d->unopened, sizeof d->unopened, "%s", hw_message());
    d->no_memory |= status == HW_NO_MEMORY;
}

/* Whether another device says that it computes the op. Sets *helper to a queue on it. */
static bool can_compute(struct detour *d, struct hw_device *device,
                        struct hw_queue **helper)
{
    union any_op as;
    enum hw_status status = queue_helper(d->queue, device, helper);
    if (status)
        keep_unused(d, status);
    else if ((status = device_computes(device, d->op, &d->args, &as)) == HW_NO_MEMORY)
        keep_unused(d, status);
    return !status;
}

/* Notes a device on which the op failed. Without memory for the note, later calls try the device
 * again. */
static void note_failure(struct detour *d, struct hw_device *device, enum hw_status status)
{
    const char *why = hw_message();
    struct failed *failed = demotes(status) ? malloc(sizeof *failed + strlen(why) + 1)
                                            : NULL;
    if (!failed)
        return;
    failed->next = d->failed;
    failed->device = device;
    memcpy(failed->why, why, strlen(why) + 1);
    d->failed = failed;
}

/* Tries the devices that follow the queue's in the context's order. So a queue on the last device
 * never wakes another device. */
static enum hw_status compute_elsewhere(struct detour *d, const void *args, const char *why)
{
    const struct catalog *found = catalog_of(d->queue->device->context);
    struct call_counts *counts = &d->queue->calls[d->op];
    for (uint32_t i = device_position(found, d->queue->device) + 1; i < found->order_count;
         i++) {
        struct hw_device *device = found->order[i];
        struct hw_queue *helper;
        if (!can_compute(d, device, &helper))
            continue;
        enum hw_status status = fetch_all(d, args);
        if (status)
            return status;
        if ((status = hw_submit(helper, d->op, &d->args, op_rows[d->op].size))) {
            note_failure(d, device, status);
            if (status == HW_NO_MEMORY)
                keep_unused(d, status);
            queue_drain(helper); /* the device may be reading operands already */
            if (passes_on(d, status))
                continue;
            return status;
        }
        if ((status = queue_settle(helper)) || (status = put_back(d, args)))
            return status;
        count(&counts->calls, 1);
        count(&counts->fallbacks, 1);
        count(&counts->fallback_bytes, d->bytes);
        report_once(d->queue, device, d->op, args, why);
        return HW_OK;
    }
    return HW_UNSUPPORTED;
}

/* Whether there is a device after this one that may be tried. */
static bool may_detour(const struct hw_queue *queue)
{
    const struct hw_context *context = queue->device->context;
    const struct catalog *found = catalog_of(context);
    return !queue->inner && context->settings.fallback != FALLBACK_ERROR &&
           device_position(found, queue->device) + 1 < found->order_count;
}

/* Fails. The message has the op, `why`, and the reason why no other device computes it.
 * `unopened` is the error of a device that could not be used, or "". */
static enum hw_status refuse(const struct hw_queue *queue, uint32_t op, const void *args,
                             enum hw_status status, const char *why, const char *unopened)
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
    return may_detour(queue) ? HW_OK : refuse(queue, op, args, status, hw_message(), "");
}

/* Another device has computed the op: demotes the op on the devices where it failed. */
static void demote_failed(const struct detour *d, const void *args, enum hw_status status,
                          const char *why)
{
    if (demotes(status))
        demote(&(struct failure){
            .device = d->queue->device, .op = d->op, .args = args, .why = why });
    for (const struct failed *f = d->failed; f; f = f->next)
        demote(&(struct failure){
            .device = f->device, .op = d->op, .args = args, .why = f->why });
}

static void detour_end(struct detour *d)
{
    while (d->failed) {
        struct failed *failed = d->failed;
        d->failed = failed->next;
        free(failed);
    }
    for (uint32_t i = 0; i < MAX_OPERANDS; i++)
        free(d->memory[i]);
}

enum hw_status fall_back(struct hw_queue *queue, uint32_t op, const void *args,
                         enum hw_status status)
{
    struct detour d = { .queue = queue, .op = op };
    char why[512];
    snprintf(why, sizeof why, "%s", hw_message());
    if (!may_detour(queue))
        return refuse(queue, op, args, status, why, "");
    enum hw_status moved = describe_all(&d, args);
    if (!moved)
        moved = compute_elsewhere(&d, args, why);
    if (!moved)
        demote_failed(&d, args, status, why);
    if (moved && d.fetched)
        queue_drain(queue); /* waits for copies that were queued earlier */
    detour_end(&d);
    if (status == HW_UNSUPPORTED && d.no_memory)
        status = HW_NO_MEMORY;
    /* keeps a status other than HW_UNSUPPORTED: the output may have been written */
    return moved == HW_UNSUPPORTED ? refuse(queue, op, args, status, why, d.unopened)
                                   : moved;
}

/* The first device after the queue's that says that it computes the op, or NULL. Moves nothing. */
struct hw_device *fallback_device(struct hw_queue *queue, uint32_t op, const void *args)
{
    struct detour d = { .queue = queue, .op = op };
    const struct catalog *found = catalog_of(queue->device->context);
    struct hw_queue *helper;
    uint32_t i = device_position(found, queue->device) + 1;
    if (!may_detour(queue) || describe_all(&d, args))
        return NULL;
    while (i < found->order_count && !can_compute(&d, found->order[i], &helper))
        i++;
    return i < found->order_count ? found->order[i] : NULL;
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
    if (!demotes(status) || queue->inner)
        return fail_in(status, "%s on %s: ", hw_op_name(op), queue->device->name);
    return may_retry(op, args) ? fall_back(queue, op, args, status)
                               : fail_in_place(queue, op, args, status);
}
