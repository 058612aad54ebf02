/* SPDX-License-Identifier: MIT */
/* queue.c - queues: opened, waited for, counted, closed. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* ---- what waits for the queue ---- */

struct deferred {
    struct hw_buffer *buffer;
    struct deferred *next;
};

static void free_deferred(struct hw_queue *queue)
{
    while (queue->deferred) {
        struct deferred *first = queue->deferred;
        queue->deferred = first->next;
        hw_buffer_free(first->buffer);
        free(first);
    }
}

void hw_buffer_free_after(struct hw_buffer *buffer, struct hw_queue *queue)
{
    struct deferred *later = buffer && queue ? malloc(sizeof *later) : NULL;
    if (!later) { /* then in order with everything: wait */
        if (queue)
            hw_queue_wait(queue);
        hw_buffer_free(buffer);
        return;
    }
    *later = (struct deferred){ .buffer = buffer, .next = queue->deferred };
    queue->deferred = later;
}

/* ---- errors ---- */

enum hw_status queue_result(struct hw_queue *queue, int32_t status)
{
    if (status == HW_LOST) {
        atomic_store(&queue->device->lost, HW_LOST);
        queue->cold |= COLD_QUEUE;
    }
    return (enum hw_status)status;
}

enum hw_status hw_queue_wait(struct hw_queue *queue)
{
    if (!queue)
        return fail(HW_INVALID, "hw_queue_wait: queue may not be NULL");
    enum hw_status status = guard(queue->device->context);
    if (status)
        return status;
    fail(HW_OK, "no reason given");
    int32_t answer = queue->device->plugin->table.queue_wait(queue->impl);
    free_deferred(queue);
    if (answer)
        return fail_in(queue_result(queue, answer), "%s: ", queue->device->name);
    return HW_OK;
}

/* ---- open and close ---- */

/* Whether the plugin was built with shorter op structs than ours. */
static bool is_old(const struct plugin *plugin)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (op >= plugin->table.op_count ||
            plugin->table.op_sizes[op] < op_descs[op].size)
            return true;
    return false;
}

static struct hw_queue *queue_create(struct hw_device *device, bool hidden)
{
    struct hw_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->device = device;
    queue->device_impl = device->impl;
    queue->ops = &device->plugin->ops;
    queue->host_tensors = (device->info.features & HW_FEATURE_HOST_TENSORS) != 0;
    queue->generation = device->context->generation;
    queue->old_plugin = is_old(device->plugin);
    queue->cold = queue->old_plugin || atomic_load(&device->lost) ? COLD_QUEUE : 0;
    queue->hidden = hidden;
    return queue;
}

static void list_add(struct hw_queue *queue)
{
    struct hw_context *context = queue->device->context;
    pthread_mutex_lock(&context->lock);
    queue->next = context->queues;
    context->queues = queue;
    pthread_mutex_unlock(&context->lock);
}

enum hw_status queue_open(struct hw_device *device, const struct hw_queue_options *options,
                          bool hidden, struct hw_queue **out)
{
    struct hw_queue *queue = queue_create(device, hidden);
    if (!queue)
        return fail(HW_NO_MEMORY, "out of memory for a queue of %s", device->name);
    const struct hw_queue_desc desc = {
        .size = sizeof desc,
        .flags = options ? options->flags : 0,
        .kernel = options && options->kernel && *options->kernel
                      ? options->kernel
                      : device->context->settings.value[SETTING_kernel].text,
    };
    queue->flags = desc.flags;
    fail(HW_OK, "no reason given");
    int32_t status = device->plugin->table.queue_open(device->impl, &desc, &queue->impl);
    if (status) {
        free(queue);
        return fail_in((enum hw_status)status, "%s: open a queue: ", device->name);
    }
    list_add(queue);
    *out = queue;
    return HW_OK;
}

enum hw_status hw_queue_open(struct hw_device *device,
                             const struct hw_queue_options *options, struct hw_queue **out)
{
    if (!out)
        return fail(HW_INVALID, "hw_queue_open: queue may not be NULL");
    *out = NULL;
    if (!device)
        return fail(HW_INVALID, "hw_queue_open: device may not be NULL");
    if (options && options->size < sizeof *options)
        return fail(HW_INVALID, "hw_queue_open: options->size is %u; set it to %zu",
                    (unsigned)options->size, sizeof *options);
    if (options && (options->flags & ~(uint32_t)(HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING)))
        return fail(HW_INVALID, "hw_queue_open: unknown flags 0x%x",
                    (unsigned)options->flags);
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    return queue_open(device, options, false, out);
}

enum hw_status hw_queue_import(struct hw_device *device, uint32_t kind, void *handle,
                               struct hw_queue **out)
{
    if (!out)
        return fail(HW_INVALID, "hw_queue_import: queue may not be NULL");
    *out = NULL;
    if (!device || !handle)
        return fail(HW_INVALID, "hw_queue_import: device and handle may not be NULL");
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    struct hw_queue *queue = queue_create(device, false);
    if (!queue)
        return fail(HW_NO_MEMORY, "out of memory for a queue of %s", device->name);
    fail(HW_OK, "no reason given");
    int32_t answer = device->plugin->table.queue_import(device->impl, kind, handle,
                                                        &queue->impl);
    if (answer) {
        free(queue);
        return fail_in((enum hw_status)answer, "%s: import a queue: ", device->name);
    }
    list_add(queue);
    *out = queue;
    return HW_OK;
}

/* Counts of closed queues, by device and op. */
struct call_counts *closed_counts(struct hw_context *context, const struct hw_device *device)
{
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i] == device)
            return context->closed_counts ? context->closed_counts + i * HW_OP_COUNT : NULL;
    return NULL;
}

static void counts_add(struct call_counts *sum, const struct call_counts *counts)
{
    sum->calls += counts->calls;
    sum->fallbacks += counts->fallbacks;
    sum->fallback_bytes += counts->fallback_bytes;
    sum->staged_bytes += counts->staged_bytes;
    sum->copied_views += counts->copied_views;
}

static void keep_counts(struct hw_context *context, const struct hw_queue *queue)
{
    if (queue->hidden)
        return;
    if (!context->closed_counts)
        context->closed_counts = calloc((size_t)context->device_count * HW_OP_COUNT,
                                        sizeof *context->closed_counts);
    struct call_counts *sum = closed_counts(context, queue->device);
    for (uint32_t op = 0; sum && op < HW_OP_COUNT; op++)
        counts_add(&sum[op], &queue->counts[op]);
}

static void queue_destroy(struct hw_queue *queue)
{
    recording_free(queue->recording);
    queue->device->plugin->table.queue_wait(queue->impl);
    free_deferred(queue);
    queue->device->plugin->table.queue_close(queue->impl);
    free(queue);
}

void hw_queue_close(struct hw_queue *queue)
{
    if (!queue || forked(queue->device->context))
        return;
    struct hw_context *context = queue->device->context;
    pthread_mutex_lock(&context->lock);
    keep_counts(context, queue);
    for (struct hw_queue **link = &context->queues; *link; link = &(*link)->next)
        if (*link == queue) {
            *link = queue->next;
            break;
        }
    pthread_mutex_unlock(&context->lock);
    queue_destroy(queue);
}

struct hw_device *hw_queue_device(struct hw_queue *queue)
{
    return queue ? queue->device : NULL;
}

/* ---- the library's own queues ---- */

enum hw_status service_lend(struct hw_device *device, struct hw_queue **queue)
{
    enum hw_status status = device_wake(device);
    if (status)
        return status;
    pthread_mutex_lock(&device->service_lock);
    if (!device->service && (status = queue_open(device, NULL, true, &device->service)))
        pthread_mutex_unlock(&device->service_lock);
    *queue = device->service;
    return status;
}

void service_return(struct hw_device *device)
{
    pthread_mutex_unlock(&device->service_lock);
}

/* ---- counts ---- */

enum hw_status hw_queue_calls(struct hw_queue *queue, uint32_t op,
                              struct hw_call_stats *stats)
{
    if (!queue || !stats || stats->size < 2 * sizeof(uint32_t) || op >= HW_OP_COUNT)
        return fail(HW_INVALID, "hw_queue_calls: queue and stats may not be NULL, op is an "
                                "enum hw_op, and stats->size is sizeof *stats");
    const struct call_counts *c = &queue->counts[op];
    const uint32_t size = stats->size < sizeof *stats ? stats->size
                                                      : (uint32_t)sizeof *stats;
    const struct hw_call_stats now = { .size = size,
                                       .calls = c->calls,
                                       .fallbacks = c->fallbacks,
                                       .fallback_bytes = c->fallback_bytes,
                                       .staged_bytes = c->staged_bytes,
                                       .copied_views = c->copied_views };
    memcpy(stats, &now, size);
    return HW_OK;
}

/* `ran` of all calls were computed here: those of its queues that did not fall back, and those
 * that other devices sent. */
static void explain_one(struct json *json, const struct hw_device *device, uint32_t op,
                        const struct call_counts *counts, uint64_t ran)
{
    if (!counts->calls && !ran)
        return;
    json_open(json, NULL, '{');
    json_string(json, "op", op_descs[op].name);
    json_string(json, "device", device->name);
    json_number(json, "calls", counts->calls);
    json_number(json, "ran", ran);
    json_number(json, "fallbacks", counts->fallbacks);
    json_number(json, "fallback_bytes", counts->fallback_bytes);
    json_number(json, "staged_bytes", counts->staged_bytes);
    json_number(json, "copied_views", counts->copied_views);
    json_close(json, '}');
}

/* Queues at work are read as they are: a count may be a call behind. */
void explain_calls(struct json *json, struct hw_context *context)
{
    json_open(json, "calls", '[');
    pthread_mutex_lock(&context->lock);
    for (uint32_t i = 0; i < context->device_count; i++)
        for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
            const struct hw_device *device = context->devices[i];
            const struct call_counts *closed = closed_counts(context, device);
            struct call_counts sum = { 0 };
            if (closed)
                sum = closed[op];
            uint64_t served = 0;
            for (struct hw_queue *q = context->queues; q; q = q->next)
                if (q->device == device && q->hidden)
                    served += q->counts[op].calls;
                else if (q->device == device)
                    counts_add(&sum, &q->counts[op]);
            explain_one(json, device, op, &sum, sum.calls - sum.fallbacks + served);
        }
    pthread_mutex_unlock(&context->lock);
    json_close(json, ']');
}

/* ---- the context closes ---- */

void close_all_work(struct hw_context *context)
{
    while (context->graphs)
        hw_graph_free(context->graphs);
    while (context->queues)
        hw_queue_close(context->queues);
    while (context->events)
        hw_event_free(context->events);
    while (context->buffers)
        hw_buffer_free(&context->buffers->base);
    free(context->closed_counts);
    context->closed_counts = NULL;
}
