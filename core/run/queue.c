/* SPDX-License-Identifier: MIT */
/* queue.c - queues: opening, waiting, what they owe, and what they counted. */
#define _POSIX_C_SOURCE 200809L
#include "run/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- device and state ---- */

uint32_t device_position(const struct hw_device *device)
{
    const struct hw_context *context = device->context;
    uint32_t i = 0;
    while (i < context->device_count && context->devices[i] != device)
        i++;
    return i;
}

enum hw_status answered(struct hw_device *device, int32_t status)
{
    if (!status)
        return HW_OK;
    plugin_failed(status);
    if (status == HW_LOST && !atomic_exchange(&device->lost, HW_LOST))
        log_line(device->context, HW_LOG_ERROR, "%s is lost: %s", device->name,
                 hw_message());
    return (enum hw_status)status;
}

enum hw_status device_usable(struct hw_device *device)
{
    enum hw_status status = guard(device->context);
    if (status)
        return status;
    if (atomic_load_explicit(&device->lost, memory_order_relaxed))
        return fail(
            HW_LOST,
            "device %s is lost; close its queues and buffers, and open a new context",
            device->name);
    return HW_OK;
}

enum hw_status queue_ready(struct hw_queue *queue, const char *function)
{
    if (!queue)
        return fail(HW_INVALID, "%s: queue may not be NULL", function);
    return device_usable(queue->device);
}

void queue_set_minds(struct hw_queue *queue)
{
    const struct plugin *plugin = queue->device->plugin;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        uint32_t minds = ODD_EMPTY;
        if (op != HW_OP_COPY) /* takes any strides */
            minds |= ODD_STRIDED;
        if (!queue->host_tensors)
            minds |= ODD_HOST;
        /* Waited for afterwards; or a plugin of another age: an older one may not know all fields
         * that are set, a newer one reads further than the caller's struct goes. */
        if (queue->recording || queue->flags & HW_QUEUE_SYNCHRONOUS ||
            op >= plugin->table.op_count || plugin->table.op_sizes[op] != op_rows[op].size)
            minds |= ODD_ALWAYS;
        queue->minds[op] = minds;
    }
}

/* ---- opening ---- */

/* Room for the counts of closed queues, so that closing one can not fail. */
static enum hw_status reserve_counts(struct hw_context *context)
{
    if (context->closed_counts)
        return HW_OK;
    context->closed_counts = calloc((size_t)context->device_count * HW_OP_COUNT,
                                    sizeof *context->closed_counts);
    return context->closed_counts ? HW_OK : fail(HW_NO_MEMORY, "out of memory for a queue");
}

static void queue_list(struct hw_queue *queue)
{
    struct hw_context *context = queue->device->context;
    queue->next = context->queues;
    if (queue->next)
        queue->next->prev = queue;
    context->queues = queue;
}

static void queue_unlist(struct hw_queue *queue)
{
    struct hw_context *context = queue->device->context;
    if (queue->prev)
        queue->prev->next = queue->next;
    else
        context->queues = queue->next;
    if (queue->next)
        queue->next->prev = queue->prev;
}

/* A queue without the plugin's part. */
static enum hw_status queue_create(struct hw_device *device, uint32_t flags,
                                   struct hw_queue **queue)
{
    enum hw_status status = device_usable(device);
    if (status || (status = device_wake(device)))
        return status;
    struct hw_queue *q = calloc(1, sizeof *q);
    if (!q ||
        !(q->helpers = calloc(device->context->device_count, sizeof(struct hw_queue *)))) {
        free(q);
        return fail(HW_NO_MEMORY, "out of memory for a queue");
    }
    q->generation = device->context->generation;
    q->device = device;
    q->device_impl = device->impl;
    q->ops = device->plugin->ops;
    q->flags = flags;
    q->host_tensors = device->info.features & HW_FEATURE_HOST_TENSORS;
    queue_set_minds(q);
    *queue = q;
    return HW_OK;
}

static void queue_free(struct hw_queue *queue)
{
    free(queue->helpers);
    free(queue->error_text);
    free(queue->busy_memory);
    free(queue);
}

/* What the plugin makes a queue from. */
struct origin {
    const char *kind; /* NULL: nothing, the queue is new */
    void *handle;
};

static enum hw_status make(struct hw_device *device, const struct hw_queue_desc *desc,
                           struct origin origin, struct hw_queue **queue)
{
    const struct hw_plugin *table = &device->plugin->table;
    struct hw_queue_desc asked = *desc;
    asked.flags &= ~(uint32_t)HW_QUEUE_SYNCHRONOUS; /* settle_synchronous() does that */
    struct hw_queue *q = NULL;
    enum hw_status status = queue_create(device, desc->flags, &q);
    if (status)
        return status;
    plugin_asked();
    status = answered(device, origin.kind
                                  ? table->queue_import(device->impl, &asked, origin.kind,
                                                        origin.handle, &q->impl)
                                  : table->queue_open(device->impl, &asked, &q->impl));
    if (status) {
        queue_free(q);
        return fail_in(status, "%s a queue on %s: ", origin.kind ? "import" : "open",
                       device->name);
    }
    *queue = q;
    return HW_OK;
}

enum hw_status queue_make(struct hw_device *device, const struct hw_queue_desc *desc,
                          struct hw_queue **queue)
{
    return make(device, desc, (struct origin){ NULL, NULL }, queue);
}

/* Into the context's list: from here on the context closes it, if nobody else does. */
static enum hw_status publish(struct hw_queue *made, struct hw_queue **queue)
{
    struct hw_context *context = made->device->context;
    pthread_mutex_lock(&context->lock);
    enum hw_status status = reserve_counts(context);
    if (!status)
        queue_list(made);
    pthread_mutex_unlock(&context->lock);
    if (status)
        queue_destroy(made);
    else
        *queue = made;
    return status;
}

static enum hw_status make_public(struct hw_device *device,
                                  const struct hw_queue_options *options,
                                  struct origin origin, const char *function,
                                  struct hw_queue **queue)
{
    struct hw_queue_options given = { .size = sizeof given };
    if (!queue)
        return fail(HW_INVALID, "%s: queue may not be NULL", function);
    *queue = NULL;
    if (!device)
        return fail(HW_INVALID, "%s: device may not be NULL", function);
    if (options && options->size < 2 * sizeof(uint32_t))
        return fail(HW_INVALID, "%s: options->size is %u; set it to sizeof *options",
                    function, (unsigned)options->size);
    if (options && !hw_knows(options, sizeof *options))
        return fail(HW_UNSUPPORTED,
                    "%s: options has fields that a newer library knows; leave "
                    "them zero, or update this one",
                    function);
    if (options)
        memcpy(&given, options,
               options->size < sizeof given ? options->size : sizeof given);
    if (given.flags & ~(uint32_t)(HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING))
        return fail(HW_INVALID, "%s: unknown flags 0x%x", function, (unsigned)given.flags);
    const struct setting_value *kernel = &device->context->settings.value[SETTING_kernel];
    bool asked = given.kernel && *given.kernel;
    const struct hw_queue_desc desc = {
        .size = sizeof desc,
        .flags = given.flags,
        .kernel = asked ? given.kernel : kernel->text,
    };
    struct hw_queue *made = NULL;
    enum hw_status status = make(device, &desc, origin, &made);
    if (status == HW_INVALID && !asked && *kernel->text && !origin.kind)
        return fail_in(status, "kernel (%s): ", kernel->source);
    return status ? status : publish(made, queue);
}

enum hw_status hw_queue_open(struct hw_device *device,
                             const struct hw_queue_options *options,
                             struct hw_queue **queue)
{
    return make_public(device, options, (struct origin){ NULL, NULL }, "hw_queue_open",
                       queue);
}

enum hw_status hw_queue_import(struct hw_device *device,
                               const struct hw_queue_options *options, const char *kind,
                               void *handle, struct hw_queue **queue)
{
    if (queue)
        *queue = NULL;
    if (!kind)
        return fail(HW_INVALID, "hw_queue_import: kind may not be NULL");
    return make_public(device, options, (struct origin){ kind, handle }, "hw_queue_import",
                       queue);
}

/* ---- scratch and debts ---- */

enum hw_status scratch_take(struct hw_queue *queue, uint64_t bytes, uint32_t flags,
                            struct buffer **buffer)
{
    if (flags == 0)
        for (struct buffer **at = &queue->idle; *at; at = &(*at)->next)
            if ((*at)->base.bytes >= bytes && (*at)->base.bytes / 4 <= bytes) {
                *buffer = *at;
                *at = (*at)->next;
                return HW_OK;
            }
    enum hw_status status = buffer_make(queue->device, bytes, flags, buffer);
    if (status != HW_NO_MEMORY || (!queue->idle && !queue->busy))
        return status;
    status = queue_settle(queue); /* gives back what lies idle */
    return status ? status : buffer_make(queue->device, bytes, flags, buffer);
}

#define BUSY_BYTES                                                                         \
    (UINT64_C(64) << 20) /* host memory in flight before the queue is waited for */

/* Keeps `memory` until the queue has passed; false: there is no room to remember it. */
static bool keep_busy(struct hw_queue *queue, void *memory)
{
    void **list = realloc(queue->busy_memory, (queue->busy_count + 1) * sizeof *list);
    if (!list)
        return false;
    queue->busy_memory = list;
    list[queue->busy_count++] = memory;
    return true;
}

void queue_free_later(struct hw_queue *queue, struct buffer *buffer)
{
    buffer->next = queue->busy;
    queue->busy = buffer;
}

void scratch_give(struct hw_queue *queue, struct buffer *buffer)
{
    if (!buffer)
        return;
    /* Device memory is used in the queue's order; pinned memory by the host as well. */
    if (buffer->base.flags & HW_BUFFER_PINNED) {
        queue->busy_bytes += buffer->base.bytes;
        queue_free_later(queue, buffer);
        return;
    }
    buffer->next = queue->idle;
    queue->idle = buffer;
}

void *scratch_host(struct hw_queue *queue, uint64_t bytes, struct hw_buffer **pinned)
{
    *pinned = NULL;
    if (queue->busy_bytes > BUSY_BYTES)
        queue_settle(queue);
    const struct words words = words_keep(); /* ordinary memory will do */
    struct buffer *buffer;
    if (bytes <= SIZE_MAX &&
        !buffer_make(queue->device, bytes, HW_BUFFER_PINNED | HW_BUFFER_HOST_VISIBLE,
                     &buffer)) {
        scratch_give(queue, buffer);
        *pinned = &buffer->base;
        return buffer->base.host;
    }
    void *memory = malloc(bytes ? (size_t)bytes : 1);
    if (memory && !keep_busy(queue, memory)) {
        free(memory);
        memory = NULL;
    }
    if (!memory) {
        fail(HW_NO_MEMORY, "out of memory for %llu bytes to stage a tensor in",
             (unsigned long long)bytes);
        return NULL;
    }
    words_restore(&words);
    queue->busy_bytes += bytes;
    return memory;
}

static void drop_list(struct buffer **list)
{
    while (*list) {
        struct buffer *buffer = *list;
        *list = buffer->next;
        buffer_drop(buffer);
    }
}

/* The queue has passed, or never will: nothing of it is used any more. */
static void release(struct hw_queue *queue)
{
    drop_list(&queue->idle);
    drop_list(&queue->busy);
    pool_passed(queue->device->pool, queue);
    while (queue->busy_count)
        free(queue->busy_memory[--queue->busy_count]);
    queue->busy_bytes = 0;
}

static void pay(struct hw_queue *queue, bool passed)
{
    struct owed *owed = queue->owed, *turned = NULL;
    queue->owed = NULL;
    while (owed) { /* the list has the last one first: turn it, later writes win */
        struct owed *next = owed->next;
        owed->next = turned;
        turned = owed;
        owed = next;
    }
    while (turned) {
        struct owed *next = turned->next;
        struct hw_tensor from = turned->to;
        uint64_t bytes;
        if (passed && turned->from && make_dense(&from, NULL, &bytes)) {
            from.data = turned->from;
            from.offset = 0;
            host_move(&turned->to, &from);
        }
        free(turned);
        turned = next;
    }
}

/* ---- waiting ---- */

/* The first error since the last wait is the one to know. */
static void keep_error(struct hw_queue *queue, enum hw_status status)
{
    if (queue->error)
        return;
    queue->error = status;
    free(queue->error_text);
    queue->error_text = strdup(hw_message());
}

/* A device that is known to be lost was reported: its helper keeps no other one from going on. */
static enum hw_status settle_helpers(struct hw_queue *queue)
{
    enum hw_status first = HW_OK;
    for (uint32_t i = 0; i < queue->device->context->device_count; i++) {
        struct hw_queue *helper = queue->helpers[i];
        const bool gone = !helper || atomic_load(&helper->device->lost);
        const enum hw_status status = gone ? HW_OK : queue_settle(helper);
        if (!first)
            first = status;
    }
    return first;
}

enum hw_status queue_settle(struct hw_queue *queue)
{
    struct hw_device *device = queue->device;
    plugin_asked();
    enum hw_status status = answered(device, device->plugin->table.queue_wait(queue->impl));
    if (status)
        fail_in(status, "queue on %s: ", device->name);
    pay(queue, !status);
    release(queue);
    if (!status)
        status = settle_helpers(queue);
    if (status)
        keep_error(queue, status);
    return status;
}

enum hw_status settle_synchronous(struct hw_queue *queue)
{
    return queue->flags & HW_QUEUE_SYNCHRONOUS && !queue->recording ? queue_settle(queue)
                                                                    : HW_OK;
}

void queue_drain(struct hw_queue *queue)
{
    const struct words words = words_keep();
    queue_settle(queue);
    for (uint32_t i = 0; i < queue->device->context->device_count; i++)
        if (queue->helpers[i])
            queue_settle(queue->helpers[i]);
    words_restore(&words);
}

enum hw_status hw_queue_wait(struct hw_queue *queue)
{
    if (!queue)
        return fail(HW_INVALID, "hw_queue_wait: queue may not be NULL");
    enum hw_status status = guard(queue->device->context);
    if (status)
        return status;
    if (queue->recording)
        return fail(HW_INVALID,
                    "hw_queue_wait: the queue is recording; hw_queue_end() comes first");
    if (atomic_load_explicit(&queue->device->lost, memory_order_relaxed) && !queue->error)
        return queue_ready(queue, "hw_queue_wait");
    queue_settle(queue);
    if ((status = queue->error))
        fail(status, "%s",
             queue->error_text ? queue->error_text : "out of memory for its words");
    queue->error = HW_OK;
    return status;
}

/* ---- closing ---- */

/* The lock of the context is held. */
static void add_counts(struct hw_queue *queue)
{
    struct hw_context *context = queue->device->context;
    struct call_counts *sum = context->closed_counts +
                              (size_t)device_position(queue->device) * HW_OP_COUNT;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        count(&sum[op].calls, atomic_load(&queue->calls[op].calls));
        count(&sum[op].fallbacks, atomic_load(&queue->calls[op].fallbacks));
        count(&sum[op].fallback_bytes, atomic_load(&queue->calls[op].fallback_bytes));
        count(&sum[op].staged_bytes, atomic_load(&queue->calls[op].staged_bytes));
        count(&sum[op].copied_views, atomic_load(&queue->calls[op].copied_views));
    }
}

void queue_destroy(struct hw_queue *queue)
{
    const struct words words = words_keep();
    graph_drop(queue->recording);
    queue->recording = NULL;
    queue_settle(queue);
    for (uint32_t i = 0; i < queue->device->context->device_count; i++)
        if (queue->helpers[i])
            queue_destroy(queue->helpers[i]);
    queue->device->plugin->table.queue_close(queue->impl);
    release(queue);
    queue_free(queue);
    words_restore(&words);
}

void hw_queue_close(struct hw_queue *queue)
{
    if (!queue || forked(queue->device->context))
        return;
    struct hw_context *context = queue->device->context;
    pthread_mutex_lock(&context->lock);
    add_counts(queue);
    queue_unlist(queue);
    pthread_mutex_unlock(&context->lock);
    queue_destroy(queue);
}

void close_all_work(struct hw_context *context)
{
    /* Queues first: what they wait for uses all the rest. */
    while (context->queues)
        hw_queue_close(context->queues);
    while (context->graphs)
        hw_graph_free(context->graphs);
    while (context->events)
        hw_event_free(context->events);
    while (context->kernels)
        hw_kernel_free(context->kernels);
    while (context->buffers)
        hw_buffer_free(&context->buffers->base);
    fallback_notes_free(context);
    free(context->closed_counts);
    context->closed_counts = NULL;
}

/* ---- queries ---- */

struct hw_device *hw_queue_device(struct hw_queue *queue)
{
    return queue ? queue->device : NULL;
}

enum hw_status queue_helper(struct hw_queue *queue, struct hw_device *device,
                            struct hw_queue **helper)
{
    struct hw_queue **slot = &queue->helpers[device_position(device)];
    const struct hw_queue_desc desc = { .size = sizeof desc, .kernel = "" };
    enum hw_status status = *slot ? device_usable(device) : queue_make(device, &desc, slot);
    if (status)
        return status;
    (*slot)->inner = true;
    *helper = *slot;
    return HW_OK;
}

static struct hw_call_stats stats_of(const struct call_counts *counts)
{
    return (struct hw_call_stats){
        .size = sizeof(struct hw_call_stats),
        .calls = atomic_load_explicit(&counts->calls, memory_order_relaxed),
        .fallbacks = atomic_load_explicit(&counts->fallbacks, memory_order_relaxed),
        .fallback_bytes = atomic_load_explicit(&counts->fallback_bytes,
                                               memory_order_relaxed),
        .staged_bytes = atomic_load_explicit(&counts->staged_bytes, memory_order_relaxed),
        .copied_views = atomic_load_explicit(&counts->copied_views, memory_order_relaxed),
    };
}

enum hw_status hw_queue_calls(struct hw_queue *queue, uint32_t op,
                              struct hw_call_stats *stats)
{
    if (!queue || !stats)
        return fail(HW_INVALID, "hw_queue_calls: queue and stats may not be NULL");
    if (op >= HW_OP_COUNT)
        return fail(HW_INVALID, "hw_queue_calls: %u is no op", (unsigned)op);
    if (stats->size < 2 * sizeof(uint32_t))
        return fail(HW_INVALID,
                    "hw_queue_calls: stats->size is %u; set it to sizeof *stats",
                    (unsigned)stats->size);
    enum hw_status status = guard(queue->device->context);
    if (status)
        return status;
    struct hw_call_stats now = stats_of(&queue->calls[op]);
    now.size = stats->size < sizeof now ? stats->size : (uint32_t)sizeof now;
    memcpy(stats, &now, now.size);
    return HW_OK;
}

static void add_stats(struct hw_call_stats *sum, const struct call_counts *counts)
{
    struct hw_call_stats more = stats_of(counts);
    sum->calls += more.calls;
    sum->fallbacks += more.fallbacks;
    sum->fallback_bytes += more.fallback_bytes;
    sum->staged_bytes += more.staged_bytes;
    sum->copied_views += more.copied_views;
}

static void explain_op(struct json *json, struct hw_context *context, uint32_t device,
                       uint32_t op)
{
    struct hw_call_stats sum = { .size = sizeof sum };
    if (context->closed_counts)
        add_stats(&sum, &context->closed_counts[(size_t)device * HW_OP_COUNT + op]);
    for (struct hw_queue *q = context->queues; q; q = q->next)
        if (q->device == context->devices[device])
            add_stats(&sum, &q->calls[op]);
    if (!sum.calls)
        return;
    json_open(json, NULL, '{');
    json_string(json, "device", context->devices[device]->name);
    json_string(json, "op", hw_op_name(op));
    json_number(json, "calls", sum.calls);
    json_number(json, "fallbacks", sum.fallbacks);
    json_number(json, "fallback_bytes", sum.fallback_bytes);
    json_number(json, "staged_bytes", sum.staged_bytes);
    json_number(json, "copied_views", sum.copied_views);
    json_close(json, '}');
}

void explain_calls(struct json *json, struct hw_context *context)
{
    pthread_mutex_lock(&context->lock);
    json_open(json, "calls", '[');
    for (uint32_t device = 0; device < context->device_count; device++)
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            explain_op(json, context, device, op);
    json_close(json, ']');
    explain_fallbacks(json, context);
    pthread_mutex_unlock(&context->lock);
}
