/* SPDX-License-Identifier: MIT */
/* Events. An op is complete when its call returns, so an event is complete when recorded. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct event {
    const struct hw_host *host;
    _Atomic int64_t ns; /* time of recording; 0: never recorded */
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int32_t event_create(void *device, uint32_t flags, void **event)
{
    const struct device *dev = device;
    if (flags & ~(uint32_t)HW_EVENT_TIMING) /* timing costs nothing here */
        return too_new(dev->host, "event");
    struct event *made = calloc(1, sizeof *made);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY, "out of memory");
    made->host = dev->host;
    *event = made;
    return HW_OK;
}

void event_destroy(void *event)
{
    free(event);
}

int32_t event_record(void *event, void *queue)
{
    struct event *e = event;
    (void)queue;
    atomic_store(&e->ns, now_ns());
    return HW_OK;
}

int32_t event_wait(void *queue, void *event)
{
    (void)queue;
    (void)event;
    return HW_OK;
}

int32_t event_sync(void *event)
{
    (void)event;
    return HW_OK;
}

int32_t event_query(void *event)
{
    (void)event;
    return HW_OK;
}

int32_t event_callback(void *event, void (*fn)(void *user), void *user)
{
    (void)event;
    fn(user);
    return HW_OK;
}

int32_t event_elapsed(void *start, void *end, double *ms)
{
    struct event *a = start, *b = end;
    const int64_t from = atomic_load(&a->ns), to = atomic_load(&b->ns);
    if (!from || !to)
        return hw_fail(a->host, HW_INVALID, "elapsed: the %s event was never recorded",
                       from ? "end" : "start");
    *ms = (double)(to - from) / 1e6;
    return HW_OK;
}
