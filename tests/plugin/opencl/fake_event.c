/* SPDX-License-Identifier: MIT */
/* fake_event.c - the stand-in's events, which are moments of its streams. */
#include "opencl_state.h"

#include "fake.h"

#include <stdlib.h>

/* ---- events ---- */

struct fake_event {
    struct object object;
    struct moment *moment;
    bool timed;
};

static void end_event(void *self)
{
    struct fake_event *event = self;
    moment_drop(event->moment);
    free(event);
}

int fake_marker(void *handle, uint32_t count, void *const *wait, void **out)
{
    struct fake_queue *queue = handle;
    if (count || wait || !out)
        return INVALID_VALUE;
    struct fake_event *event = object_new(sizeof *event, end_event);
    event->moment = moment_new();
    event->timed = queue->timed;
    stream_mark(queue->stream, event->moment);
    *out = event;
    return SUCCESS;
}

int fake_barrier(void *queue, uint32_t count, void *const *wait, void **event)
{
    if (event)
        return INVALID_VALUE;
    for (uint32_t i = 0; i < count; i++)
        stream_await(((struct fake_queue *)queue)->stream,
                     ((struct fake_event *)wait[i])->moment);
    return SUCCESS;
}

int fake_wait(uint32_t count, void *const *events)
{
    for (uint32_t i = 0; i < count; i++)
        moment_wait(((struct fake_event *)events[i])->moment);
    return SUCCESS;
}

int fake_event_info(void *event, uint32_t what, size_t room_for, void *value, size_t *size)
{
    enum { EXECUTION_STATUS = 0x11D3, COMPLETE = 0, RUNNING = 1 };
    const int state = moment_passed(((struct fake_event *)event)->moment) ? COMPLETE
                                                                          : RUNNING;
    return what == EXECUTION_STATUS ? reply(&state, sizeof state, room_for, value, size)
                                    : INVALID_VALUE;
}

int fake_event_time(void *handle, uint32_t what, size_t room_for, void *value, size_t *size)
{
    enum { END = 0x1283 };
    const struct fake_event *event = handle;
    if (what != END || !event->timed || !moment_passed(event->moment))
        return PROFILING_INFO_NOT_AVAILABLE;
    const uint64_t time = moment_time(event->moment);
    return reply(&time, sizeof time, room_for, value, size);
}

struct notice {
    void (*fn)(void *event, int status, void *user);
    void *event, *user;
};

static void give_notice(void *data)
{
    struct notice *notice = data;
    notice->fn(notice->event, SUCCESS, notice->user);
    free(notice);
}

int fake_event_callback(void *event, int status,
                        void (*fn)(void *event, int status, void *user), void *user)
{
    struct notice *notice = malloc(sizeof *notice);
    if (!notice)
        return OUT_OF_HOST_MEMORY;
    *notice = (struct notice){ fn, event, user };
    moment_call(((struct fake_event *)event)->moment, give_notice, notice);
    return status;
}

int fake_retain_event(void *event)
{
    return object_retain(event);
}

int fake_release_event(void *event)
{
    return object_release(event);
}
