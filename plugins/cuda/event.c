/* SPDX-License-Identifier: MIT */
/* Events: each is an event of the driver. A callback runs on a stream that waits for the event. */
#include "cuda.h"

#include <stdlib.h>

struct event {
    struct device *device;
    void *event;
    pthread_mutex_t lock; /* until `stream` exists: threads may share an event */
    void *stream;         /* for callbacks; NULL until the first */
};

int32_t event_create(void *self, uint32_t flags, void **out)
{
    struct device *device = self;
    if (flags & ~(uint32_t)HW_EVENT_TIMING)
        return too_new(device->host, "event");
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    event->device = device;
    int32_t status = enter(device);
    if (!status) {
        status = answer(device,
                        device->cuda->event_create(
                            &event->event, flags & HW_EVENT_TIMING ? 0 : EVENT_NO_TIMING),
                        "create an event");
        leave(device);
    }
    if (status) {
        free(event);
        return status;
    }
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return HW_OK;
}

/* The driver first completes everything that waits for the event, and callbacks. */
void event_destroy(void *self)
{
    struct event *event = self;
    struct device *device = event->device;
    if (enter_to_close(device, "destroy an event")) {
        if (event->stream)
            note(device, device->cuda->stream_destroy(event->stream), "destroy a stream");
        note(device, device->cuda->event_destroy(event->event), "destroy an event");
        leave(device);
    }
    pthread_mutex_destroy(&event->lock);
    free(event);
}

int32_t event_record(void *self, void *queue_self)
{
    struct event *event = self;
    const int32_t status = enter(event->device);
    if (status)
        return status;
    const int result = event->device->cuda->event_record(
        event->event, ((struct queue *)queue_self)->stream);
    leave(event->device);
    return answer(event->device, result, "record an event");
}

int32_t event_wait(void *queue_self, void *self)
{
    struct queue *queue = queue_self;
    const int32_t status = enter(queue->device);
    if (status)
        return status;
    const int result = queue->device->cuda->stream_wait_event(
        queue->stream, ((struct event *)self)->event, 0);
    leave(queue->device);
    return answer(queue->device, result, "wait for an event");
}

int32_t event_sync(void *self)
{
    struct event *event = self;
    const int32_t status = enter(event->device);
    if (status)
        return status;
    const int result = event->device->cuda->event_wait(event->event);
    leave(event->device);
    return answer(event->device, result, "wait for an event");
}

int32_t event_query(void *self)
{
    struct event *event = self;
    const int32_t status = enter(event->device);
    if (status)
        return status;
    const int result = event->device->cuda->event_query(event->event);
    leave(event->device);
    return result == NOT_READY ? HW_NOT_READY
                               : answer(event->device, result, "query an event");
}

/* ---- callbacks ---- */

struct callback {
    void (*fn)(void *user);
    void *user;
};

/* On a lost device, too. */
static void run(void *stream, int status, void *self)
{
    struct callback *callback = self;
    (void)stream, (void)status;
    callback->fn(callback->user);
    free(callback);
}

/* Creates the stream for callbacks if it does not exist. */
static int open_stream(struct event *event)
{
    int result = 0;
    pthread_mutex_lock(&event->lock);
    if (!event->stream)
        result = event->device->cuda->stream_create(&event->stream, STREAM_NON_BLOCKING);
    pthread_mutex_unlock(&event->lock);
    return result;
}

static int add(struct event *event, struct callback *callback)
{
    const struct driver *cuda = event->device->cuda;
    int result = open_stream(event);
    if (!result)
        result = cuda->stream_wait_event(event->stream, event->event, 0);
    if (!result)
        result = cuda->stream_callback(event->stream, run, callback, 0);
    return result;
}

int32_t event_callback(void *self, void (*fn)(void *user), void *user)
{
    struct event *event = self;
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return hw_fail(event->device->host, HW_NO_MEMORY, "out of memory");
    *callback = (struct callback){ fn, user };
    int32_t status = enter(event->device);
    if (!status) {
        status = answer(event->device, add(event, callback), "register a callback");
        leave(event->device);
    }
    if (status)
        free(callback);
    return status;
}

int32_t event_elapsed(void *start, void *end, double *ms)
{
    struct event *from = start, *to = end;
    float elapsed;
    const int32_t status = enter(from->device);
    if (status)
        return status;
    const int result = from->device->cuda->event_elapsed(&elapsed, from->event, to->event);
    leave(from->device);
    if (result == NOT_READY)
        return HW_NOT_READY;
    if (!result)
        *ms = (double)elapsed;
    return answer(from->device, result, "read the time between events");
}
