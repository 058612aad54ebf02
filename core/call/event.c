/* SPDX-License-Identifier: MIT */
/* event.c - events, which the plugin implements. They are not emulated: without them, the functions
 * return HW_UNSUPPORTED, and an application can use hw_queue_wait(). */
#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "call/queue.h"
#include "memory/device.h"
#include "route/cost.h"
#include "route/stage.h"

#include <stdlib.h>

/* How an event was last recorded. */
enum record { NEVER, RECORDED, TIMED };

struct hw_event {
    struct hw_device *device;
    void *impl;
    uint32_t flags;
    _Atomic int recorded; /* enum record: threads may share an event */
    struct hw_event *next, *prev;
};

static enum hw_status event_ready(struct hw_event *event, const char *function)
{
    if (!event)
        return fail_null(function, "event");
    plugin_message_clear();
    return device_usable(event->device);
}

/* Takes the status that the plugin returned, with the plugin's message. */
static enum hw_status event_result(struct hw_event *event, int32_t status,
                                   const char *function)
{
    if (status == HW_OK || status == HW_NOT_READY)
        return (enum hw_status)status;
    return fail_in(device_result(event->device, status), "%s on %s: ", function,
                   event->device->name);
}

enum hw_status hw_event_create(struct hw_device *device, uint32_t flags,
                               struct hw_event **event)
{
    REQUIRE(event);
    *event = NULL;
    REQUIRE(device);
    if (flags & ~(uint32_t)HW_EVENT_TIMING)
        return fail(HW_INVALID, "hw_event_create: unknown flags 0x%x", (unsigned)flags);
    enum hw_status status = device_usable(device);
    if (status || (status = device_wake(device)))
        return status;
    struct hw_event *made = calloc(1, sizeof *made);
    if (!made)
        return fail(HW_NO_MEMORY, "out of memory for an event");
    made->device = device;
    made->flags = flags;
    plugin_message_clear();
    status = event_result(
        made, device->plugin->table.event_create(device->impl, flags, &made->impl),
        "hw_event_create");
    if (status) {
        free(made);
        return status;
    }
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    list_add(&context->events, made);
    pthread_mutex_unlock(&context->lock);
    *event = made;
    return HW_OK;
}

void hw_event_free(struct hw_event *event)
{
    if (!event || forked(event->device->context->generation))
        return;
    struct hw_context *context = event->device->context;
    pthread_mutex_lock(&context->lock);
    list_remove(&context->events, event);
    pthread_mutex_unlock(&context->lock);
    event->device->plugin->table.event_destroy(event->impl);
    free(event);
}

/* Finishes pending writes to host tensors first, because the caller may read them after the
 * event. */
enum hw_status hw_event_record(struct hw_event *event, struct hw_queue *queue)
{
    enum hw_status status = event_ready(event, "hw_event_record");
    if (status || (status = queue_ready(queue, "hw_event_record")))
        return status;
    if (queue->device != event->device)
        return fail(HW_INVALID, "hw_event_record: the event belongs to %s, the queue to %s",
                    event->device->name, queue->device->name);
    if (queue->recording)
        return fail(HW_INVALID, "hw_event_record: the queue is recording a graph");
    if ((status = pending_in_order(queue)))
        return status;
    plugin_message_clear();
    status = event_result(
        event, event->device->plugin->table.event_record(event->impl, queue->impl),
        "hw_event_record");
    if (!status)
        event->recorded = queue->flags & HW_QUEUE_TIMING ? TIMED : RECORDED;
    return status;
}

enum hw_status hw_event_sync(struct hw_event *event)
{
    enum hw_status status = event_ready(event, "hw_event_sync");
    if (status || !event->recorded)
        return status;
    return event_result(event, event->device->plugin->table.event_sync(event->impl),
                        "hw_event_sync");
}

enum hw_status hw_event_wait(struct hw_event *event, struct hw_queue *queue)
{
    enum hw_status status = event_ready(event, "hw_event_wait");
    if (status || (status = queue_ready(queue, "hw_event_wait")))
        return status;
    if (queue->recording)
        return fail(HW_INVALID, "hw_event_wait: the queue is recording a graph");
    if (queue->device->context != event->device->context)
        return fail(HW_INVALID,
                    "hw_event_wait: event and queue belong to different contexts");
    if (!event->recorded)
        return HW_OK;
    /* A driver cannot wait for events of another driver, and not always for events of its own other
     * devices. */
    const struct plugin *plugin = queue->device->plugin;
    cost_route_other_work(queue);
    int32_t answer = plugin == event->device->plugin
                         ? plugin->table.event_wait(queue->impl, event->impl)
                         : HW_UNSUPPORTED;
    if (answer == HW_UNSUPPORTED)
        return hw_event_sync(event);
    if (answer)
        return fail_in(device_result(queue->device, answer),
                       "hw_event_wait on %s: ", queue->device->name);
    return HW_OK;
}

enum hw_status hw_event_query(struct hw_event *event)
{
    enum hw_status status = event_ready(event, "hw_event_query");
    if (status || !event->recorded)
        return status;
    return event_result(event, event->device->plugin->table.event_query(event->impl),
                        "hw_event_query");
}

enum hw_status hw_event_callback(struct hw_event *event, void (*fn)(void *user), void *user)
{
    enum hw_status status = event_ready(event, "hw_event_callback");
    if (status)
        return status;
    REQUIRE(fn);
    if (!event->recorded) {
        fn(user);
        return HW_OK;
    }
    return event_result(event,
                        event->device->plugin->table.event_callback(event->impl, fn, user),
                        "hw_event_callback");
}

static enum hw_status event_timed(const struct hw_event *event, const char *which)
{
    const int recorded = event->recorded;
    const char *fault = NULL;
    if (!(event->flags & HW_EVENT_TIMING))
        fault = "created without HW_EVENT_TIMING";
    else if (recorded == NEVER)
        fault = "never recorded";
    else if (recorded != TIMED)
        fault = "recorded on a queue without HW_QUEUE_TIMING";
    return fault ? fail(HW_INVALID, "hw_event_elapsed: the %s event was %s", which, fault)
                 : HW_OK;
}

enum hw_status hw_event_elapsed(struct hw_event *start, struct hw_event *end, double *ms)
{
    enum hw_status status = event_ready(start, "hw_event_elapsed");
    if (status || (status = event_ready(end, "hw_event_elapsed")))
        return status;
    REQUIRE(ms);
    *ms = 0.0;
    if (start->device != end->device)
        return fail(HW_INVALID, "hw_event_elapsed: start belongs to %s, end to %s",
                    start->device->name, end->device->name);
    if ((status = event_timed(start, "start")) || (status = event_timed(end, "end")))
        return status;
    return event_result(
        end, end->device->plugin->table.event_elapsed(start->impl, end->impl, ms),
        "hw_event_elapsed");
}
