/* SPDX-License-Identifier: MIT */
/* op_state.c - one list for each device, protected by the context's lock. It has
 *
 *   forms     An op with dtypes that the admission test has cases for. A form that the test skipped
 *             is tested when the device is about to get it for the first time. One thread tests,
 *             others that need an untested form of the device wait, and all other threads go on.
 *   rejected  The next device in the context's order computes the op (fallback.c), because it
 *             failed the admission test or took too long there, could not be submitted (it would
 *             fail again with each call), or had wrong results. This lasts until
 *             hw_device_reset(). A later start repeats the test.
 *
 * Queues remember calls that their device accepted (seen.h). A rejection must interrupt that. It
 * gives each queue of the device a generation that no process has: the next call of the queue then
 * gets the full check, which finds the rejection. */
#include "route/op_state.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "call/queue.h"
#include "memory/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { TESTED, UNTESTED, WITHDRAWN, SLOW, FAILED, WRONG };

struct op_state {
    struct op_state *next;
    struct op_form form; /* with PACKED */
    enum state state;
    char why[];
};

static bool is_rejected(const struct op_state *entry)
{
    return entry->state >= WITHDRAWN;
}

static bool is_by_test(const struct op_state *entry)
{
    return entry->state == WITHDRAWN || entry->state == SLOW;
}

/* ---- forms ---- */

/* A bit of a dtype here: the operand is packed, so another kernel reads it. No test has packed
 * operands. */
enum { PACKED = 0x80 };
_Static_assert((int)HW_DTYPE_END <= PACKED, "PACKED");

static struct op_form form_of(uint32_t op, const void *args)
{
    struct op_form form = { .op = op };
    for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
        const struct hw_tensor *t = operand_at(args, &op_rows[op].operands[i]);
        form.dtype[i] = t->dtype | (t->dtype != HW_NONE && t->layout ? PACKED : 0);
    }
    return form;
}

/* `none` stands for HW_NONE. */
static void dtypes_write(uint32_t op, const int32_t *dtypes, const char *none, char *text)
{
    int n = 0;
    for (uint32_t i = 0; i < op_rows[op].operand_count && n < DTYPES_SIZE - 8; i++) {
        const int32_t dtype = dtypes[i] & ~PACKED;
        n += snprintf(text + n, DTYPES_SIZE - (size_t)n, "%s%s", n ? " " : "",
                      dtype == HW_NONE ? none : hw_dtype_name(dtype));
    }
}

void write_form(uint32_t op, const int32_t dtypes[MAX_OPERANDS], char text[DTYPES_SIZE])
{
    dtypes_write(op, dtypes, "*", text);
}

void write_dtypes(uint32_t op, const void *args, char text[DTYPES_SIZE])
{
    const struct op_form form = form_of(op, args);
    dtypes_write(op, form.dtype, "-", text);
}

/* ---- the list ---- */

/* The caller holds the context's lock, or is the only user of the device. */
static struct op_state *state_add(struct hw_device *device, const struct op_state *like,
                                  const char *why)
{
    const size_t length = strlen(why) + 1;
    struct op_state *made = malloc(sizeof *made + length);
    if (!made)
        return NULL;
    *made = *like;
    memcpy(made->why, why, length);
    made->next = device->op_states;
    device->op_states = made;
    return made;
}

bool op_list_form(struct hw_device *device, const struct op_form *form, bool tested)
{
    const struct op_state made = { .form = *form, .state = tested ? TESTED : UNTESTED };
    if (!tested)
        atomic_fetch_or(&device->op_flags, OPS_UNTESTED);
    return state_add(device, &made, "") != NULL;
}

/* Whether the entry is about calls of this form. In a result of the test, HW_NONE is any dtype. */
static bool state_rejects(const struct op_state *entry, const struct op_form *form)
{
    bool same = is_rejected(entry) && entry->form.op == form->op;
    for (uint32_t i = 0; i < MAX_OPERANDS && same; i++)
        same = entry->form.dtype[i] == form->dtype[i] ||
               (entry->form.dtype[i] == HW_NONE && is_by_test(entry));
    return same;
}

static const struct op_state *state_rejecting(const struct hw_device *device,
                                              const struct op_form *form)
{
    const struct op_state *entry = device->op_states;
    while (entry && !state_rejects(entry, form))
        entry = entry->next;
    return entry;
}

/* Rejects an op. Wakes queues also for an op that they may have seen with other dtypes. */
static bool state_reject(struct hw_device *device, const struct op_state *like,
                         const char *why)
{
    if (!state_add(device, like, why))
        return false;
    atomic_fetch_or(&device->op_flags, OPS_REJECTED);
    for (struct hw_queue *q = device->context->queues; q; q = q->next)
        if (q->device == device)
            atomic_store_explicit(&q->generation, NO_GENERATION, memory_order_release);
    device_changed(device);
    return true;
}

bool op_withdraw(struct hw_device *device, const struct withdrawal *withdrawal)
{
    struct op_state made = { .form.op = withdrawal->op,
                             .state = withdrawal->slow ? SLOW : WITHDRAWN };
    memcpy(made.form.dtype, withdrawal->dtypes, sizeof made.form.dtype);
    return state_reject(device, &made, withdrawal->why);
}

void demote(const struct failure *failure)
{
    struct hw_device *device = failure->device;
    const struct op_state made = { .form = form_of(failure->op, failure->args),
                                   .state = failure->wrong ? WRONG : FAILED };
    char dtypes[DTYPES_SIZE] = "";
    pthread_mutex_lock(&device->context->lock);
    const bool fresh = !state_rejecting(device, &made.form) &&
                       state_reject(device, &made, failure->why);
    pthread_mutex_unlock(&device->context->lock);
    if (!fresh)
        return;
    write_dtypes(failure->op, failure->args, dtypes);
    log_line(&device->context->log, failure->wrong ? HW_LOG_ERROR : HW_LOG_WARN,
             "%s (%s) is %snot tried again on %s: %s. Remedy: " OP_REMEDY
             "; the program tries it again if it starts anew or calls "
             "hw_device_reset()",
             hw_op_name(failure->op), dtypes, failure->wrong ? "wrong and " : "",
             device->name, failure->why);
}

void op_states_free(struct hw_device *device)
{
    while (device->op_states) {
        struct op_state *entry = device->op_states;
        device->op_states = entry->next;
        free(entry);
    }
    device->op_flags = 0;
}

/* ---- testing a form before its first use ---- */

enum { OTHER = MAX_OPERANDS + 1 };

/* How many operands only one of the two has; OTHER if they are of different ops or dtypes, or one
 * is packed. */
static uint32_t form_distance(const struct op_form *a, const struct op_form *b)
{
    uint32_t differ = a->op == b->op ? 0 : OTHER;
    for (uint32_t i = 0; i < MAX_OPERANDS && differ < OTHER; i++)
        if (a->dtype[i] != b->dtype[i])
            differ = a->dtype[i] == HW_NONE || b->dtype[i] == HW_NONE ? differ + 1 : OTHER;
    return differ;
}

/* The cases of the test have only some combinations of dtypes. A call with another combination uses
 * the result of the nearest form: the same dtypes, except for operands that only one of the two
 * has. */
static struct op_state *nearest_form(const struct hw_device *device,
                                     const struct op_form *form)
{
    struct op_state *best = NULL;
    uint32_t least = OTHER;
    for (struct op_state *entry = device->op_states; entry && least; entry = entry->next) {
        const uint32_t differ = is_rejected(entry) ? OTHER
                                                   : form_distance(&entry->form, form);
        if (differ >= least)
            continue;
        least = differ;
        best = entry;
    }
    return best;
}

static bool has_untested(const struct hw_device *device)
{
    const struct op_state *entry = device->op_states;
    while (entry && entry->state != UNTESTED)
        entry = entry->next;
    return entry != NULL;
}

/* Tests the form of the entry, unless another thread has done so meanwhile or has found the op
 * wrong. The caller holds the context's lock, which is released during the test. */
static void form_test(struct hw_device *device, struct op_state *entry,
                      const struct op_form *form)
{
    pthread_mutex_t *lock = &device->context->lock;
    pthread_mutex_unlock(lock);
    pthread_mutex_lock(&device->op_testing);
    pthread_mutex_lock(lock);
    if (entry->state == UNTESTED && !state_rejecting(device, form)) {
        pthread_mutex_unlock(lock);
        device->context->test(device, &entry->form);
        pthread_mutex_lock(lock);
        entry->state = TESTED;
        if (!has_untested(device))
            atomic_fetch_and(&device->op_flags, ~(uint32_t)OPS_UNTESTED);
    }
    pthread_mutex_unlock(&device->op_testing);
}

/* ---- the look-up ---- */

static enum hw_status state_refuse(const struct op_state *entry)
{
    if (entry->state == WITHDRAWN)
        return fail(HW_UNSUPPORTED,
                    "the admission test withdrew it: %s (remedy: " OP_REMEDY ")",
                    entry->why);
    if (entry->state == SLOW)
        return fail(HW_UNSUPPORTED,
                    "the admission test did not come to an end with it, and is repeated at "
                    "a later start: %s (remedy: " SLOW_REMEDY ")",
                    entry->why);
    return fail(HW_UNSUPPORTED,
                "it failed or was wrong here before, and is not tried again until the "
                "program starts anew or calls hw_device_reset(): %s",
                entry->why);
}

enum hw_status op_look_up(struct hw_device *device, uint32_t op, const void *args,
                          bool test)
{
    const struct op_form form = form_of(op, args);
    enum hw_status status = HW_OK;
    pthread_mutex_lock(&device->context->lock);
    const struct op_state *rejected = state_rejecting(device, &form);
    struct op_state *nearest = NULL;
    if (!rejected && test && device->op_flags & OPS_UNTESTED)
        nearest = nearest_form(device, &form);
    if (nearest && nearest->state == UNTESTED) {
        form_test(device, nearest, &form);
        rejected = state_rejecting(device, &form);
    }
    if (rejected)
        status = state_refuse(rejected);
    pthread_mutex_unlock(&device->context->lock);
    return status;
}

void queue_refresh(struct hw_queue *queue)
{
    const uint32_t own = queue->device->context->generation;
    if (likely(atomic_load_explicit(&queue->generation, memory_order_relaxed) == own))
        return;
    atomic_exchange_explicit(&queue->generation, own, memory_order_acq_rel);
    memset(queue->seen.slot, 0, sizeof queue->seen.slot);
}

/* ---- the reset ---- */

/* Forms stay in the list, because a thread may be testing one. Returns how many ops were rejected.
 * The caller holds the context's lock. */
static uint32_t states_clear(struct hw_device *device)
{
    uint32_t cleared = 0;
    for (struct op_state **at = &device->op_states; *at;) {
        struct op_state *entry = *at;
        if (!is_rejected(entry)) {
            entry->state = TESTED;
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        free(entry);
        cleared++;
    }
    atomic_store(&device->op_flags, 0);
    return cleared;
}

enum hw_status hw_device_reset(struct hw_device *device)
{
    REQUIRE(device);
    enum hw_status status = device_usable(device);
    if (status)
        return status;
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    const uint32_t cleared = states_clear(device);
    pthread_mutex_unlock(&context->lock);
    if (cleared)
        log_line(&context->log, HW_LOG_INFO, "%s: ops that are tried again: %u",
                 device->name, (unsigned)cleared);
    return HW_OK;
}

/* ---- the report ---- */

static void state_explain(struct json *json, const struct hw_device *device,
                          const struct op_state *entry)
{
    static const char *const causes[] = {
        [WITHDRAWN] = "admission", [SLOW] = "slow", [FAILED] = "failed", [WRONG] = "wrong"
    };
    char dtypes[DTYPES_SIZE] = "";
    dtypes_write(entry->form.op, entry->form.dtype, is_by_test(entry) ? "*" : "-", dtypes);
    json_open(json, NULL, '{');
    json_string(json, "op", hw_op_name(entry->form.op));
    json_string(json, "dtypes", dtypes);
    json_string(json, "device", device->name);
    json_string(json, "cause", causes[entry->state]);
    json_string(json, "why", entry->why);
    json_string(json, "remedy", entry->state == SLOW ? SLOW_REMEDY : OP_REMEDY);
    json_close(json, '}');
}

void explain_rejected(struct json *json, const struct hw_context *context)
{
    const struct catalog *found = catalog_of(context);
    json_open(json, "demotions", '[');
    for (uint32_t i = 0; i < found->device_count; i++)
        for (const struct op_state *e = found->devices[i]->op_states; e; e = e->next)
            if (is_rejected(e))
                state_explain(json, found->devices[i], e);
    json_close(json, ']');
}
