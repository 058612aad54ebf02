/* SPDX-License-Identifier: MIT */
/* queue.c - queues: opening, waiting, closing, and their counts. */
#define _POSIX_C_SOURCE 200809L
#include "call/queue.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "base/text.h"
#include "call/check.h"
#include "call/graph.h"
#include "call/kernel_list.h"
#include "call/seen.h"
#include "memory/device.h"
#include "route/cost.h"
#include "route/scratch.h"
#include "route/shadow.h"
#include "route/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- state ---- */

enum hw_status queue_ready(struct hw_queue *queue, const char *function)
{
    if (!queue)
        return fail_null(function, "queue");
    return device_usable(queue->device);
}

void queue_set_cold_traits(struct hw_queue *queue)
{
    const struct plugin *plugin = queue->device->plugin;
    const bool always = queue->recording || queue->flags & HW_QUEUE_SYNCHRONOUS;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        uint32_t cold_traits = TRAIT_EMPTY | TRAIT_REJECTED;
        queue->submit[op] = queue->shadow ? shadow_submit : submit_for(op, !always);
        if (op != HW_OP_COPY) /* accepts any strides */
            cold_traits |= TRAIT_STRIDED;
        if (!queue->host_tensors)
            cold_traits |= TRAIT_HOST;
        /* The cold path waits for synchronous queues, and handles plugins of another
         * version: an older plugin may not know all fields that are set, a newer plugin
         * reads beyond the caller's struct. */
        if (always || op >= plugin->table.op_count ||
            plugin->table.op_sizes[op] != op_rows[op].size)
            cold_traits |= TRAIT_ALWAYS;
        queue->cold_traits[op] = cold_traits;
    }
}

/* ---- opening ---- */

/* Makes room for the counts of closed queues, so that closing a queue cannot fail. */
static enum hw_status queue_counts_reserve(struct hw_device *device)
{
    if (!device->closed_counts)
        device->closed_counts = calloc(HW_OP_COUNT, sizeof *device->closed_counts);
    return device->closed_counts ? HW_OK : fail(HW_NO_MEMORY, "out of memory for a queue");
}

static void queue_free(struct hw_queue *queue)
{
    shadow_end(queue);
    free(queue->error_text);
    free(queue);
}

/* Makes a queue without the plugin's part. */
static enum hw_status queue_create(struct hw_device *device, uint32_t flags,
                                   struct hw_queue **queue)
{
    enum hw_status status = device_usable(device);
    if (status || (status = device_wake(device)))
        return status;
    struct hw_queue *q = aligned_alloc(_Alignof(struct hw_queue), sizeof *q);
    if (!q)
        return fail(HW_NO_MEMORY, "out of memory for a queue");
    memset(q, 0, sizeof *q);
    q->device = device;
    q->device_impl = device->impl;
    q->generation = device->context->generation;
    q->ops = device->plugin->ops;
    q->plan_launch = device->plugin->table.plan_launch;
    q->flags = flags;
    q->host_tensors = device->info.features & HW_FEATURE_HOST_TENSORS;
    q->pinned_why = "it is a queue of the library's own";
    if ((status = shadow_begin(q))) {
        queue_free(q);
        return status;
    }
    queue_set_cold_traits(q);
    *queue = q;
    return HW_OK;
}

/* Where a queue comes from. */
struct origin {
    const char *function; /* NULL: the library opens the queue for itself */
    const char *kind;     /* of an imported queue; NULL: the queue is new */
    void *handle;
};

static enum hw_status queue_make_from(struct hw_device *device,
                                      const struct hw_queue_desc *desc,
                                      const struct origin *origin, struct hw_queue **queue)
{
    const struct hw_plugin *table = &device->plugin->table;
    struct hw_queue_desc asked = *desc;
    asked.flags &= ~(uint32_t)HW_QUEUE_SYNCHRONOUS; /* settle_synchronous() does that */
    struct hw_queue *q = NULL;
    enum hw_status status = queue_create(device, desc->flags, &q);
    if (status)
        return status;
    plugin_message_clear();
    status = device_result(
        device, origin->kind ? table->queue_import(device->impl, &asked, origin->kind,
                                                   origin->handle, &q->impl)
                             : table->queue_open(device->impl, &asked, &q->impl));
    if (!status && !q->impl)
        status = fail(HW_INTERNAL, "plugin %s returned HW_OK without a queue", table->name);
    if (status) {
        queue_free(q);
        return fail_in(status, "%s a queue on %s: ", origin->kind ? "import" : "open",
                       device->name);
    }
    *queue = q;
    return HW_OK;
}

/* Puts the queue into the context's list, so that hw_close() closes it if the application
 * does not. */
static enum hw_status queue_publish(struct hw_queue *made, struct hw_queue **queue)
{
    struct hw_context *context = made->device->context;
    pthread_mutex_lock(&context->lock);
    enum hw_status status = queue_counts_reserve(made->device);
    if (!status)
        list_add(&context->queues, made);
    pthread_mutex_unlock(&context->lock);
    if (status)
        queue_destroy(made);
    else
        *queue = made;
    return status;
}

static enum hw_status queue_options_read(const char *function,
                                         const struct hw_queue_options *options,
                                         struct hw_queue_options *given)
{
    enum hw_status status = check_fields(function, "options", options, 2 * sizeof(uint32_t),
                                         sizeof *options);
    if (status)
        return status;
    if (options)
        given->flags = options->flags;
    if (options &&
        options->size >= offsetof(struct hw_queue_options, kernel) + sizeof given->kernel &&
        options->kernel)
        given->kernel = options->kernel;
    if (given->flags & ~(uint32_t)(HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING))
        return fail(HW_INVALID, "%s: unknown flags 0x%x", function, (unsigned)given->flags);
    if (*given->kernel && !kernel_list_valid(given->kernel))
        return fail(
            HW_INVALID,
            "%s: kernel \"%.200s\" must be a list of portable, <row> or <op>=<row>, "
            "separated by commas",
            function, given->kernel);
    return HW_OK;
}

/* Makes a queue of the application. HW_KERNEL counts if it has not chosen the rows. */
static enum hw_status queue_make_public(struct hw_device *device,
                                        const struct hw_queue_options *options,
                                        struct origin origin, struct hw_queue **queue)
{
    if (!queue)
        return fail_null(origin.function, "queue");
    *queue = NULL;
    if (!device)
        return fail_null(origin.function, "device");
    struct hw_queue_options given = { .kernel = "" };
    enum hw_status status = queue_options_read(origin.function, options, &given);
    if (status)
        return status;
    const struct setting_value *set = &device->context->settings.value[SETTING_kernel];
    const bool is_set = !*given.kernel && *set->text;
    char *kept = NULL; /* the entries of HW_KERNEL for this device */
    if (is_set && (status = kernel_list_for(device, set->text, &kept)))
        return status;
    const struct hw_queue_desc desc = {
        .size = sizeof desc,
        .flags = given.flags,
        .kernel = kept ? kept : given.kernel,
    };
    struct hw_queue *made = NULL;
    status = queue_make_from(device, &desc, &origin, &made);
    free(kept);
    if (status == HW_INVALID && is_set && !origin.kind)
        return fail_in(status, "kernel (%s): ", set->source);
    if (status)
        return status;
    made->write_in_order = origin.kind;
    cost_route_begin(made, origin.kind);
    return queue_publish(made, queue);
}

enum hw_status hw_queue_open(struct hw_device *device,
                             const struct hw_queue_options *options,
                             struct hw_queue **queue)
{
    return queue_make_public(device, options,
                             (struct origin){ "hw_queue_open", NULL, NULL }, queue);
}

enum hw_status hw_queue_import(struct hw_device *device,
                               const struct hw_queue_options *options, const char *kind,
                               void *handle, struct hw_queue **queue)
{
    if (queue)
        *queue = NULL;
    REQUIRE(kind);
    return queue_make_public(device, options,
                             (struct origin){ "hw_queue_import", kind, handle }, queue);
}

/* ---- export ---- */

enum hw_status queue_write_in_order(struct hw_queue *queue)
{
    queue->write_in_order = true;
    return pending_in_order(queue);
}

enum hw_status queue_handle(struct hw_queue *queue, const char *function, const char *kind,
                            void **handle)
{
    struct hw_device *device = queue->device;
    plugin_message_clear();
    const int32_t answer = device->plugin->table.queue_export(queue->impl, kind, handle);
    return answer ? fail_in(device_result(device, answer), "%s on %s: ", function,
                            device->name)
                  : queue_write_in_order(queue);
}

enum hw_status hw_queue_export(struct hw_queue *queue, const char *kind, void **handle)
{
    REQUIRE(handle);
    *handle = NULL;
    enum hw_status status = queue_ready(queue, "hw_queue_export");
    if (status)
        return status;
    REQUIRE(kind);
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_queue_export: the queue is recording; use "
                                    "hw_queue_call() to submit work between its ops");
    status = queue_handle(queue, "hw_queue_export", kind, handle);
    if (!status)
        queue->pinned_why =
            "the application has its handle (hw_queue_export), and may use it";
    return status;
}

/* ---- waiting ---- */

/* Keeps the first error since the last wait. */
static void queue_keep_error(struct hw_queue *queue, enum hw_status status)
{
    if (queue->error)
        return;
    queue->error = status;
    free(queue->error_text);
    queue->error_text = strdup(hw_message());
}

/* Skips helpers on lost devices: these have been reported, and must not affect other helpers. */
static enum hw_status settle_helpers(struct hw_queue *queue)
{
    enum hw_status first = HW_OK;
    for (struct hw_queue *helper = queue->helpers; helper; helper = helper->next) {
        const bool gone = atomic_load(&helper->device->lost);
        const enum hw_status status = gone ? HW_OK : queue_settle(helper);
        if (!first)
            first = status;
    }
    return first;
}

enum hw_status queue_settle(struct hw_queue *queue)
{
    struct hw_device *device = queue->device;
    plugin_message_clear();
    enum hw_status status = device_result(device,
                                          device->plugin->table.queue_wait(queue->impl));
    if (status)
        fail_in(status, "queue on %s: ", device->name);
    pending_finish(queue, !status);
    scratch_release(queue);
    if (!status)
        status = settle_helpers(queue);
    if (!queue->pinned_why)
        cost_route_settled(queue);
    if (status)
        queue_keep_error(queue, status);
    return status;
}

enum hw_status settle_synchronous(struct hw_queue *queue)
{
    return queue->flags & HW_QUEUE_SYNCHRONOUS && !queue->recording ? queue_settle(queue)
                                                                    : HW_OK;
}

void queue_drain(struct hw_queue *queue)
{
    const struct saved_message saved = message_save();
    queue_settle(queue);
    for (struct hw_queue *helper = queue->helpers; helper; helper = helper->next)
        queue_settle(helper);
    message_restore(&saved);
}

enum hw_status hw_queue_wait(struct hw_queue *queue)
{
    REQUIRE(queue);
    enum hw_status status = guard(queue->device->context->generation);
    if (status)
        return status;
    if (queue->recording)
        return fail(HW_INVALID,
                    "hw_queue_wait: the queue is recording; call hw_queue_end() first");
    if (atomic_load_explicit(&queue->device->lost, memory_order_relaxed) && !queue->error)
        return queue_ready(queue, "hw_queue_wait");
    queue_settle(queue);
    if ((status = queue->error))
        fail(status, "%s",
             queue->error_text ? queue->error_text : "out of memory for its message");
    queue->error = HW_OK;
    return status;
}

/* ---- closing ---- */

/* Adds the counts to those of the device's closed queues. The caller holds the context's lock. */
static void queue_keep_counts(struct hw_queue *queue)
{
    struct call_counts *sum = queue->device->closed_counts;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
#define X(name) count(&sum[op].name, atomic_load(&queue->calls[op].name));
        CALL_COUNTS(X)
#undef X
    }
}

void queue_destroy(struct hw_queue *queue)
{
    const struct saved_message saved = message_save();
    graph_drop(queue->recording);
    queue->recording = NULL;
    queue_settle(queue);
    for (struct hw_queue *helper; (helper = queue->helpers);) {
        queue->helpers = helper->next;
        queue_destroy(helper);
    }
    seen_drop(queue);
    queue->device->plugin->table.queue_close(queue->impl);
    scratch_release(queue);
    queue_free(queue);
    message_restore(&saved);
}

void hw_queue_close(struct hw_queue *queue)
{
    if (!queue || forked(queue->device->context->generation))
        return;
    struct hw_context *context = queue->device->context;
    pthread_mutex_lock(&context->lock);
    queue_keep_counts(queue);
    list_remove(&context->queues, queue);
    pthread_mutex_unlock(&context->lock);
    queue_destroy(queue);
}

/* ---- queries ---- */

struct hw_device *hw_queue_device(struct hw_queue *queue)
{
    return queue ? queue->device : NULL;
}

enum hw_status queue_helper(struct hw_queue *queue, struct hw_device *device,
                            struct hw_queue **helper)
{
    const struct hw_queue_desc desc = { .size = sizeof desc, .kernel = "" };
    struct hw_queue *known = queue->helpers;
    while (known && known->device != device)
        known = known->next;
    *helper = known;
    if (known)
        return device_usable(device);
    const struct origin own = { NULL, NULL, NULL };
    enum hw_status status = queue_make_from(device, &desc, &own, helper);
    if (status)
        return status;
    (*helper)->is_helper = true;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        (*helper)->submit[op] = submit_for(op, false); /* a demotion could not correct it */
    (*helper)->next = queue->helpers;
    queue->helpers = *helper;
    return HW_OK;
}

void add_counts(const struct call_counts *counts, struct hw_call_stats *sum)
{
#define X(name) sum->name += atomic_load_explicit(&counts->name, memory_order_relaxed);
    CALL_COUNTS(X)
#undef X
}

enum hw_status hw_queue_calls(struct hw_queue *queue, uint32_t op,
                              struct hw_call_stats *stats)
{
    REQUIRE(queue);
    REQUIRE(stats);
    if (op >= HW_OP_COUNT)
        return fail(HW_INVALID, "hw_queue_calls: %u is not an op", (unsigned)op);
    enum hw_status status = check_size(__func__, "stats", stats, 2 * sizeof(uint32_t));
    if (status || (status = guard(queue->device->context->generation)))
        return status;
    struct hw_call_stats now = { .size = 0 };
    add_counts(&queue->calls[op], &now);
    return answer_struct(stats, &now, sizeof now);
}
