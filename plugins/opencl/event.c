/* SPDX-License-Identifier: MIT */
/* Events: each refers to the marker of its last record. */
#include "opencl.h"

#include <stdlib.h>

struct event {
    struct device *device;
    pthread_mutex_t lock;
    void *last; /* NULL: never recorded */
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
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return HW_OK;
}

static void drop(struct device *device, void *marker)
{
    if (marker)
        note(device, device->cl->release_event(marker), "release an event");
}

void event_destroy(void *self)
{
    struct event *event = self;
    drop(event->device, event->last);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* Retains and returns the last marker; NULL: there is none. Returns an error of OpenCL. */
static int hold(struct event *event, void **marker)
{
    pthread_mutex_lock(&event->lock);
    int error = event->last ? event->device->cl->retain_event(event->last) : 0;
    *marker = error ? NULL : event->last;
    pthread_mutex_unlock(&event->lock);
    return error;
}

int32_t event_record(void *self, void *queue_self)
{
    struct event *event = self;
    struct queue *queue = queue_self;
    const struct opencl *cl = event->device->cl;
    void *marker = NULL;
    int32_t status = check_lost(queue->device);
    if (!status)
        status = answer(queue->device, cl->marker(queue->handle, 0, NULL, &marker),
                        "record an event");
    if (status)
        return status;
    pthread_mutex_lock(&event->lock);
    void *before = event->last;
    event->last = marker;
    pthread_mutex_unlock(&event->lock);
    drop(event->device, before);
    return answer(queue->device, cl->flush(queue->handle), "record an event");
}

/* An event of another context cannot be used. */
int32_t event_wait(void *queue_self, void *self)
{
    struct queue *queue = queue_self;
    struct event *event = self;
    const struct opencl *cl = queue->device->cl;
    void *marker;
    if (event->device != queue->device)
        return hw_fail(queue->device->host, HW_UNSUPPORTED,
                       "the event belongs to another OpenCL device");
    int error = hold(event, &marker);
    if (!error && marker)
        error = cl->barrier(queue->handle, 1, &marker, NULL);
    if (!error && marker)
        error = cl->flush(queue->handle);
    drop(event->device, marker);
    return answer(queue->device, error, "wait for an event");
}

int32_t event_sync(void *self)
{
    struct event *event = self;
    void *marker;
    int error = hold(event, &marker);
    if (!error && marker)
        error = event->device->cl->wait(1, &marker);
    drop(event->device, marker);
    return answer(event->device, error, "wait for an event");
}

int32_t event_query(void *self)
{
    struct event *event = self;
    void *marker;
    int state = 0, error = hold(event, &marker);
    if (!error && marker)
        error = event->device->cl->event_info(marker, EVENT_STATUS, sizeof state, &state,
                                              NULL);
    drop(event->device, marker);
    if (!error && state > 0)
        return HW_NOT_READY;
    return answer(event->device, error ? error : state, "query an event");
}

/* ---- callbacks ---- */

struct callback {
    struct device *device;
    void (*fn)(void *user);
    void *user;
};

static void count_callback(struct device *device, int change)
{
    pthread_mutex_lock(&device->callback_lock);
    device->callbacks += change;
    if (!device->callbacks)
        pthread_cond_broadcast(&device->callback_done);
    pthread_mutex_unlock(&device->callback_lock);
}

/* After an error, too. */
static void run(void *marker, int status, void *self)
{
    struct callback *callback = self;
    (void)marker, (void)status;
    callback->fn(callback->user);
    count_callback(callback->device, -1);
    free(callback);
}

/* Counts the callback before it can be called. */
static int add_callback(struct device *device, void *marker, struct callback *callback)
{
    count_callback(device, 1);
    const int error = device->cl->event_callback(marker, EVENT_COMPLETE, run, callback);
    if (error)
        count_callback(device, -1);
    return error;
}

int32_t event_callback(void *self, void (*fn)(void *user), void *user)
{
    struct event *event = self;
    struct device *device = event->device;
    void *marker;
    const int32_t status = answer(device, hold(event, &marker), "register a callback");
    if (status)
        return status;
    if (!marker) {
        fn(user);
        return HW_OK;
    }
    struct callback *callback = malloc(sizeof *callback);
    int error = OUT_OF_HOST_MEMORY;
    if (callback) {
        *callback = (struct callback){ device, fn, user };
        error = add_callback(device, marker, callback);
    }
    if (error)
        free(callback);
    drop(device, marker);
    return answer(device, error, "register a callback");
}

/* Nanoseconds, when the marker completed. */
static int time_of(struct event *event, uint64_t *time)
{
    void *marker;
    int error = hold(event, &marker);
    if (!error && marker)
        error = event->device->cl->event_time(marker, EVENT_END, sizeof *time, time, NULL);
    drop(event->device, marker);
    return error;
}

int32_t event_elapsed(void *start, void *end, double *ms)
{
    uint64_t from = 0, to = 0;
    int error = time_of(start, &from);
    if (!error)
        error = time_of(end, &to);
    if (error == PROFILING_INFO_NOT_AVAILABLE)
        return HW_NOT_READY;
    *ms = ((double)to - (double)from) / 1e6;
    return answer(((struct event *)start)->device, error, "read the time between events");
}
