/* SPDX-License-Identifier: MIT */
/* event.c - points in a queue's order. */
#include "work.h"

#include <stdlib.h>

struct hw_event {
    struct hw_device *device;
    void *impl;
    bool recorded;
    struct hw_event *next;
};

#define TABLE(event) ((event)->device->plugin->table)

static enum hw_status answer(const struct hw_event *event, int32_t status, const char *what)
{
    if (status == HW_OK || status == HW_NOT_READY)
        return (enum hw_status)status;
    return fail_in((enum hw_status)status, "%s: %s: ", event->device->name, what);
}

static enum hw_status usable(const struct hw_event *event, const char *what)
{
    if (!event)
        return fail(HW_INVALID, "%s: event may not be NULL", what);
    return guard(event->device->context);
}

enum hw_status hw_event_create(struct hw_device *device, struct hw_event **out)
{
    if (!out)
        return fail(HW_INVALID, "hw_event_create: event may not be NULL");
    *out = NULL;
    if (!device)
        return fail(HW_INVALID, "hw_event_create: device may not be NULL");
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    struct hw_event *event = calloc(1, sizeof *event);
    if (!event)
        return fail(HW_NO_MEMORY, "out of memory for an event");
    event->device = device;
    fail(HW_OK, "no reason given");
    status = answer(event, TABLE(event).event_create(device->impl, &event->impl),
                    "create an event");
    if (status) {
        free(event);
        return status;
    }
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    event->next = context->events;
    context->events = event;
    pthread_mutex_unlock(&context->lock);
    *out = event;
    return HW_OK;
}

void hw_event_free(struct hw_event *event)
{
    if (!event || forked(event->device->context))
        return;
    struct hw_context *context = event->device->context;
    pthread_mutex_lock(&context->lock);
    for (struct hw_event **link = &context->events; *link; link = &(*link)->next)
        if (*link == event) {
            *link = event->next;
            break;
        }
    pthread_mutex_unlock(&context->lock);
    TABLE(event).event_destroy(event->impl);
    free(event);
}

enum hw_status hw_event_record(struct hw_event *event, struct hw_queue *queue)
{
    enum hw_status status = usable(event, "hw_event_record");
    if (status)
        return status;
    if (!queue || queue->device != event->device)
        return fail(HW_INVALID, "hw_event_record: the event is one of %s, the queue of %s",
                    event->device->name, queue ? queue->device->name : "none");
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_event_record: the queue is recording a graph");
    status = answer(event, TABLE(event).event_record(event->impl, queue->impl),
                    "record an event");
    event->recorded |= status == HW_OK;
    return status;
}

enum hw_status hw_event_wait(struct hw_event *event, struct hw_queue *queue)
{
    enum hw_status status = usable(event, "hw_event_wait");
    if (status)
        return status;
    if (!queue)
        return fail(HW_INVALID, "hw_event_wait: queue may not be NULL");
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_event_wait: the queue is recording a graph");
    if (!event->recorded)
        return HW_OK;
    if (queue->device != event->device)
        return hw_event_sync(event);
    return answer(event, TABLE(event).event_wait(queue->impl, event->impl),
                  "wait for an event");
}

enum hw_status hw_event_sync(struct hw_event *event)
{
    enum hw_status status = usable(event, "hw_event_sync");
    if (status || !event->recorded)
        return status;
    return answer(event, TABLE(event).event_sync(event->impl), "wait for an event");
}

enum hw_status hw_event_query(struct hw_event *event)
{
    enum hw_status status = usable(event, "hw_event_query");
    if (status || !event->recorded)
        return status;
    return answer(event, TABLE(event).event_query(event->impl), "query an event");
}

enum hw_status hw_event_callback(struct hw_event *event, void (*fn)(void *user), void *user)
{
    enum hw_status status = usable(event, "hw_event_callback");
    if (status)
        return status;
    if (!fn)
        return fail(HW_INVALID, "hw_event_callback: fn may not be NULL");
    if (!event->recorded) {
        fn(user);
        return HW_OK;
    }
    return answer(event, TABLE(event).event_callback(event->impl, fn, user),
                  "set an event's callback");
}

enum hw_status hw_event_elapsed(struct hw_event *start, struct hw_event *end, double *ms)
{
    enum hw_status status = usable(start, "hw_event_elapsed");
    if (status || (status = usable(end, "hw_event_elapsed")))
        return status;
    if (!ms || start->device != end->device || !start->recorded || !end->recorded)
        return fail(HW_INVALID, "hw_event_elapsed: two recorded events of one device, and "
                                "somewhere for the answer");
    *ms = 0.0;
    return answer(end, TABLE(end).event_elapsed(start->impl, end->impl, ms),
                  "elapsed time");
}
