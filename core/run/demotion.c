/* SPDX-License-Identifier: MIT */
/* demotion.c - an op that cannot be submitted on a device would fail again with each call. So the
 * device does not get this op on operands of these dtypes any more: the next device in the
 * context's order computes it (fallback.c). A demotion is logged once, listed by hw_explain(), and
 * lasts until hw_device_reset().
 *
 * Ops that failed the admission test are added when the context is opened, or before their first
 * use (untested.c).
 *
 * Queues remember calls that their device accepted (seen.h). A demotion must interrupt that. It
 * gives each queue of the device a generation that no process has: the next call of the queue then
 * gets the full check, which finds the demotion. */
#include "run/demotion.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "run/device.h"
#include "run/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct demotion {
    struct demotion *next;
    struct hw_device *device;
    uint32_t op;
    uint64_t kind, mask; /* matches calls if kind_of() & mask is `kind` */
    enum cause { FAILED, WRONG, ADMISSION } cause;
    char dtypes[DTYPES_SIZE];
    char why[];
};

static int put_dtype(char *text, int used, const char *name)
{
    return used +
           snprintf(text + used, DTYPES_SIZE - (size_t)used, "%s%s", used ? " " : "", name);
}

void write_dtypes(uint32_t op, const void *args, char text[DTYPES_SIZE])
{
    int n = 0;
    for (uint32_t i = 0; i < op_rows[op].operand_count && n < DTYPES_SIZE - 8; i++) {
        const struct hw_tensor *t = operand_at(args, &op_rows[op].operands[i]);
        n = put_dtype(text, n, t->dtype == HW_NONE ? "-" : hw_dtype_name(t->dtype));
    }
}

void write_withdrawn(uint32_t op, const int32_t dtypes[MAX_OPERANDS],
                     char text[DTYPES_SIZE])
{
    int n = 0;
    for (uint32_t i = 0; i < op_rows[op].operand_count && n < DTYPES_SIZE - 8; i++)
        n = put_dtype(text, n, dtypes[i] == HW_NONE ? "*" : hw_dtype_name(dtypes[i]));
}

_Static_assert(MAX_OPERANDS * 8 <= 64 && HW_DTYPE_END <= 128, "kind_of()");

/* A byte for each operand: its dtype, and a bit for packed operands, which use other kernels. */
static uint64_t kind_of(uint32_t op, const void *args)
{
    uint64_t kind = 0;
    for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
        const struct hw_tensor *t = operand_at(args, &op_rows[op].operands[i]);
        kind = kind << 8 | ((uint64_t)t->dtype & 0x7f) | (t->layout ? 0x80 : 0);
    }
    return kind;
}

/* The caller holds the context's lock. */
static struct demotion *find(const struct hw_device *device, uint32_t op, const void *args)
{
    const uint64_t kind = kind_of(op, args);
    struct demotion *d = device->context->demotions;
    while (d && (d->device != device || d->op != op || d->kind != (kind & d->mask)))
        d = d->next;
    return d;
}

enum hw_status find_demotion(struct hw_device *device, uint32_t op, const void *args)
{
    enum hw_status status = HW_OK;
    pthread_mutex_lock(&device->context->lock);
    const struct demotion *found = find(device, op, args);
    if (found && found->cause == ADMISSION)
        status = fail(HW_UNSUPPORTED, "the admission test withdrew it: %s (remedy: %s)",
                      found->why, WITHDRAWAL_REMEDY);
    else if (found)
        status =
            fail(HW_UNSUPPORTED,
                 "it failed or was wrong here before, and is not tried again until the "
                 "program starts anew or calls hw_device_reset(): %s",
                 found->why);
    pthread_mutex_unlock(&device->context->lock);
    return status;
}

/* ---- demoting ---- */

static struct demotion *make(struct hw_device *device, uint32_t op, enum cause cause,
                             const char *why)
{
    const size_t length = strlen(why) + 1;
    struct demotion *made = calloc(1, sizeof *made + length);
    if (!made)
        return NULL;
    made->device = device;
    made->op = op;
    made->cause = cause;
    memcpy(made->why, why, length);
    return made;
}

/* The caller holds the context's lock. */
static void wake_queues(const struct hw_device *device)
{
    for (struct hw_queue *q = device->context->queues; q; q = q->next)
        if (q->device == device)
            atomic_store_explicit(&q->generation, NO_GENERATION, memory_order_release);
}

/* The caller holds the context's lock. */
static void add(struct demotion *made)
{
    struct hw_device *device = made->device;
    made->next = device->context->demotions;
    device->context->demotions = made;
    atomic_fetch_add(&device->demoted, 1);
}

/* Adds `made` and takes ownership, unless such a demotion exists already. */
static bool list(struct demotion *made, const void *args)
{
    struct hw_device *device = made->device;
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    const bool fresh = !find(device, made->op, args);
    if (fresh) {
        add(made);
        wake_queues(device);
    }
    pthread_mutex_unlock(&context->lock);
    if (fresh)
        device_changed(device);
    return fresh;
}

void demote(const struct failure *failure)
{
    struct hw_device *device = failure->device;
    struct demotion *made = make(device, failure->op, failure->wrong ? WRONG : FAILED,
                                 failure->why);
    if (made) {
        made->kind = kind_of(failure->op, failure->args);
        made->mask = UINT64_MAX;
        write_dtypes(failure->op, failure->args, made->dtypes);
    }
    if (!made || !list(made, failure->args)) {
        free(made);
        return;
    }
    log_line(&device->context->log, failure->wrong ? HW_LOG_ERROR : HW_LOG_WARN,
             "%s (%s) is %snot tried again on %s: %s. Remedy: update the driver or the "
             "plugin; the program tries it again if it starts anew or calls "
             "hw_device_reset()",
             hw_op_name(failure->op), made->dtypes, failure->wrong ? "wrong and " : "",
             device->name, failure->why);
}

/* The test has no packed operands, which use other kernels. */
bool withdraw(struct hw_device *device, const struct withdrawal *withdrawal)
{
    const uint32_t op = withdrawal->op;
    const int32_t *dtypes = withdrawal->dtypes;
    struct demotion *made = make(device, op, ADMISSION, withdrawal->why);
    if (!made)
        return false;
    for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
        made->kind = made->kind << 8 | (uint64_t)dtypes[i];
        made->mask = made->mask << 8 | (dtypes[i] == HW_NONE ? 0 : 0xff);
    }
    write_withdrawn(op, dtypes, made->dtypes);
    add(made);
    /* Needed if the op ended a process: queues may have seen it with other dtypes. */
    wake_queues(device);
    device_changed(device);
    return true;
}

void queue_refresh(struct hw_queue *queue)
{
    const uint32_t own = queue->device->context->generation;
    if (likely(atomic_load_explicit(&queue->generation, memory_order_relaxed) == own))
        return;
    atomic_exchange_explicit(&queue->generation, own, memory_order_acq_rel);
    memset(queue->seen.slot, 0, sizeof queue->seen.slot);
}

/* ---- lifting ---- */

/* Removes the demotions of the device, or all if it is NULL. The caller holds the context's
 * lock. */
static uint32_t lift(struct hw_context *context, const struct hw_device *device)
{
    uint32_t lifted = 0;
    for (struct demotion **at = &context->demotions; *at;) {
        struct demotion *d = *at;
        if (device && d->device != device) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        free(d);
        lifted++;
    }
    return lifted;
}

enum hw_status hw_device_reset(struct hw_device *device)
{
    REQUIRE(device);
    enum hw_status status = device_usable(device);
    if (status)
        return status;
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    const uint32_t lifted = lift(context, device);
    atomic_store(&device->demoted, 0);
    pthread_mutex_unlock(&context->lock);
    if (lifted)
        log_line(&context->log, HW_LOG_INFO, "%s: ops that are tried again: %u",
                 device->name, (unsigned)lifted);
    return HW_OK;
}

void demotions_drop(const struct hw_device *device)
{
    pthread_mutex_lock(&device->context->lock);
    lift(device->context, device);
    pthread_mutex_unlock(&device->context->lock);
}

void demotions_free(struct hw_context *context)
{
    lift(context, NULL);
}

/* ---- the report ---- */

void explain_demotions(struct json *json, const struct hw_context *context)
{
    static const char *const causes[] = { "failed", "wrong", "admission" };
    json_open(json, "demotions", '[');
    for (const struct demotion *d = context->demotions; d; d = d->next) {
        json_open(json, NULL, '{');
        json_string(json, "op", hw_op_name(d->op));
        json_string(json, "dtypes", d->dtypes);
        json_string(json, "device", d->device->name);
        json_string(json, "cause", causes[d->cause]);
        json_string(json, "why", d->why);
        json_string(json, "remedy", WITHDRAWAL_REMEDY);
        json_close(json, '}');
    }
    json_close(json, ']');
}
