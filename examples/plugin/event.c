/* SPDX-License-Identifier: MIT */
/* event.c - an event refers to its last record; earlier records complete without it. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "discrete.h"

#include <stdlib.h>
#include <time.h>

struct callback {
    struct callback *next;
    void (*fn)(void *user);
    void *user;
};

/* One record of an event. It is held by the event while it is the last one, by the queue that
 * it is recorded on, and by the queues that wait for it. */
struct mark {
    _Atomic uint32_t holders;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool passed;
    struct timespec when;
    struct callback *callbacks;
};

struct event {
    struct device *device;
    pthread_mutex_t lock;
    struct mark *last; /* NULL: never recorded */
};

int32_t event_create(void *device, uint32_t flags, void **out)
{
    const struct hw_host *host = ((struct device *)device)->instance->host;
    if (flags & ~(uint32_t)HW_EVENT_TIMING) /* which costs nothing here */
        return hw_fail(host, HW_UNSUPPORTED,
                       "event flags 0x%x are not supported; update the plugin",
                       (unsigned)flags);
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return HW_OK;
}

/* The last record, or NULL. */
static struct mark *mark_hold(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    struct mark *mark = event->last;
    if (mark)
        atomic_fetch_add(&mark->holders, 1);
    pthread_mutex_unlock(&event->lock);
    return mark;
}

static void mark_drop(struct mark *mark)
{
    if (!mark || atomic_fetch_sub(&mark->holders, 1) > 1)
        return;
    pthread_cond_destroy(&mark->changed);
    pthread_mutex_destroy(&mark->lock);
    free(mark);
}

static void mark_wait(struct mark *mark)
{
    if (!mark)
        return;
    pthread_mutex_lock(&mark->lock);
    while (!mark->passed) /* also on a lost device: records always run */
        pthread_cond_wait(&mark->changed, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
}

int32_t event_sync(void *self)
{
    struct event *event = self;
    mark_wait(mark_hold(event));
    return event->device->lost ? device_lost(event->device) : HW_OK;
}

/* Waits and callbacks of its records are not affected. */
void event_destroy(void *self)
{
    struct event *event = self;
    mark_drop(event->last);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* Callbacks run before a query can see the event as complete. */
static int32_t run_record(struct queue *queue, struct job *job)
{
    struct mark *mark = job->u.mark;
    (void)queue;
    pthread_mutex_lock(&mark->lock);
    while (mark->callbacks) {
        struct callback *callback = mark->callbacks;
        mark->callbacks = callback->next;
        pthread_mutex_unlock(&mark->lock);
        callback->fn(callback->user);
        free(callback);
        pthread_mutex_lock(&mark->lock);
    }
    mark->passed = true;
    clock_gettime(CLOCK_MONOTONIC, &mark->when);
    pthread_cond_broadcast(&mark->changed);
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
    return HW_OK;
}

int32_t event_record(void *self, void *queue_self)
{
    struct event *event = self;
    struct queue *queue = queue_self;
    struct job *job = queue_job(queue, run_record);
    struct mark *mark = job ? calloc(1, sizeof *mark) : NULL;
    if (!mark) {
        free(job);
        return queue_no_job(queue);
    }
    mark->holders = 2; /* the event and the job */
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->changed, NULL);
    pthread_mutex_lock(&event->lock);
    struct mark *before = event->last;
    event->last = mark;
    pthread_mutex_unlock(&event->lock);
    mark_drop(before);
    job->u.mark = mark;
    job->always = true;
    return queue_submit(queue, job);
}

static int32_t run_wait(struct queue *queue, struct job *job)
{
    (void)queue;
    mark_wait(job->u.mark);
    return HW_OK;
}

/* The second device can wait for the first, but not the first for the second. */
int32_t event_wait(void *queue_self, void *self)
{
    struct queue *queue = queue_self;
    if (queue->device->index < ((struct event *)self)->device->index)
        return hw_fail(queue->device->instance->host, HW_UNSUPPORTED,
                       "the first test device cannot wait for the second one");
    struct job *job = queue_job(queue, run_wait);
    if (!job)
        return queue_no_job(queue);
    job->u.mark = mark_hold(self);
    job->always = true; /* it holds a record, which it has to release */
    return queue_submit(queue, job);
}

int32_t event_query(void *self)
{
    struct mark *mark = mark_hold(self);
    if (!mark)
        return HW_OK;
    pthread_mutex_lock(&mark->lock);
    const bool passed = mark->passed;
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
    return passed ? HW_OK : HW_NOT_READY;
}

int32_t event_callback(void *self, void (*fn)(void *user), void *user)
{
    struct event *event = self;
    struct mark *mark = mark_hold(event);
    struct callback *callback = malloc(sizeof *callback);
    if (!callback) {
        mark_drop(mark);
        return hw_fail(event->device->instance->host, HW_NO_MEMORY, "out of memory");
    }
    *callback = (struct callback){ .fn = fn, .user = user };
    if (mark) {
        pthread_mutex_lock(&mark->lock);
        if (!mark->passed) {
            struct callback **end = &mark->callbacks;
            while (*end)
                end = &(*end)->next;
            *end = callback;
            callback = NULL;
        }
        pthread_mutex_unlock(&mark->lock);
        mark_drop(mark);
    }
    if (callback)
        fn(user); /* the event is complete */
    free(callback);
    return HW_OK;
}

/* Reads when the event completed; false if it has not. */
static bool passed_at(struct event *event, struct timespec *when)
{
    struct mark *mark = mark_hold(event);
    if (!mark)
        return false;
    pthread_mutex_lock(&mark->lock);
    const bool passed = mark->passed;
    *when = mark->when;
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
    return passed;
}

int32_t event_elapsed(void *start, void *end, double *ms)
{
    struct timespec from, to;
    if (!passed_at(start, &from) || !passed_at(end, &to))
        return HW_NOT_READY;
    *ms = (double)(to.tv_sec - from.tv_sec) * 1e3 +
          (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    return HW_OK;
}
