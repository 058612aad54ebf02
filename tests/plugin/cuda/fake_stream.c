/* SPDX-License-Identifier: MIT */
/* fake_stream.c - the stand-in's streams, each a thread; events, which are moments on them; and
 * graphs, which are recorded jobs of a stream. */
#include "driver_state.h"
#include "fake.h"
#include "objects.h"

#include <stdlib.h>

/* ---- streams ---- */

struct fake_stream {
    struct context *context;
    struct stream *stream;
    struct fake_stream *next;
};

static struct fake_stream *streams;

struct stream *stream_of(void *handle)
{
    const struct fake_stream *stream = handle;
    return stream && stream->context == current() ? stream->stream : NULL;
}

void for_streams(const struct context *context, void (*fn)(struct stream *stream))
{
    pthread_mutex_lock(&driver_lock);
    for (struct fake_stream *at = streams; at; at = at->next)
        if (!context || at->context == context)
            fn(at->stream);
    pthread_mutex_unlock(&driver_lock);
}

int fake_stream_create(void **out, unsigned flags)
{
    struct fake_stream *stream = calloc(1, sizeof *stream);
    (void)flags;
    if (!stream || !(stream->stream = stream_open())) {
        free(stream);
        return OUT_OF_MEMORY;
    }
    stream->context = current();
    pthread_mutex_lock(&driver_lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&driver_lock);
    objects_add(stream);
    *out = stream;
    return SUCCESS;
}

/* For the command's rivals; the plugin does not call it. */
int cuStreamGetCtx(void *handle, void **context);
int cuStreamGetCtx(void *handle, void **context)
{
    *context = ((struct fake_stream *)handle)->context;
    return SUCCESS;
}

int fake_stream_destroy(void *handle)
{
    struct fake_stream *stream = handle;
    if (!objects_remove(stream))
        return INVALID_HANDLE;
    pthread_mutex_lock(&driver_lock);
    struct fake_stream **at = &streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&driver_lock);
    stream_close(stream->stream);
    free(stream);
    return SUCCESS;
}

int fake_stream_wait(void *handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream || stream_records(stream))
        return INVALID_HANDLE;
    stream_wait(stream);
    return SUCCESS;
}

int fake_context_wait(void)
{
    return SUCCESS;
}

int fake_fill(uint64_t to, unsigned char value, size_t bytes, void *handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream)
        return INVALID_HANDLE;
    stream_submit_fill(stream, (void *)(uintptr_t)to, value, bytes);
    return SUCCESS;
}

int fake_copy_rows(const struct copy_rows *rows, void *handle)
{
    struct stream *stream = stream_of(handle);
    const struct stream_copy copy = { .to = (void *)(uintptr_t)rows->to,
                                      .from = (const void *)(uintptr_t)rows->from,
                                      .to_pitch = rows->to_pitch,
                                      .from_pitch = rows->from_pitch,
                                      .bytes = rows->bytes,
                                      .rows = rows->rows };
    if (!stream)
        return INVALID_HANDLE;
    if (rows->from_kind != ANY_MEMORY || rows->to_kind != ANY_MEMORY ||
        rows->from_pitch < rows->bytes || rows->to_pitch < rows->bytes)
        return INVALID_VALUE;
    stream_submit_copy(stream, &copy);
    return SUCCESS;
}

int fake_copy(uint64_t to, uint64_t from, size_t bytes, void *handle)
{
    struct stream *stream = stream_of(handle);
    const struct stream_copy copy = { .to = (void *)(uintptr_t)to,
                                      .from = (const void *)(uintptr_t)from,
                                      .bytes = bytes,
                                      .rows = 1 };
    if (!stream)
        return INVALID_HANDLE;
    stream_submit_copy(stream, &copy);
    return SUCCESS;
}

struct host_call {
    void (*fn)(void *stream, int status, void *user);
    void *stream, *user;
};

static void run_host_call(void *data)
{
    const struct host_call *call = data;
    call->fn(call->stream, SUCCESS, call->user);
}

int fake_stream_callback(void *handle, void (*fn)(void *stream, int status, void *user),
                         void *user, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    const struct host_call call = { fn, handle, user };
    if (!stream || flags)
        return INVALID_HANDLE;
    stream_submit_lasting(stream, run_host_call, &call, sizeof call);
    return SUCCESS;
}

/* ---- events ---- */

struct fake_event {
    struct context *context;
    pthread_mutex_t lock;
    struct moment *last; /* NULL: never recorded */
    bool timed;
};

int fake_event_create(void **out, unsigned flags)
{
    enum { NO_TIMING = 2 };
    struct fake_event *event = calloc(1, sizeof *event);
    if (!event)
        return OUT_OF_MEMORY;
    event->context = current();
    event->timed = !(flags & NO_TIMING);
    pthread_mutex_init(&event->lock, NULL);
    objects_add(event);
    *out = event;
    return SUCCESS;
}

int fake_event_destroy(void *handle)
{
    struct fake_event *event = handle;
    if (!objects_remove(event))
        return INVALID_HANDLE;
    moment_drop(event->last);
    pthread_mutex_destroy(&event->lock);
    free(event);
    return SUCCESS;
}

/* Takes a reference. */
static struct moment *last_of(struct fake_event *event)
{
    pthread_mutex_lock(&event->lock);
    struct moment *moment = event->last;
    if (moment)
        moment_hold(moment);
    pthread_mutex_unlock(&event->lock);
    return moment;
}

int fake_event_record(void *handle, void *stream_handle)
{
    struct fake_event *event = handle;
    struct stream *stream = stream_of(stream_handle);
    if (!stream || event->context != current())
        return INVALID_HANDLE;
    struct moment *moment = moment_new();
    stream_mark(stream, moment);
    pthread_mutex_lock(&event->lock);
    struct moment *before = event->last;
    event->last = moment;
    pthread_mutex_unlock(&event->lock);
    moment_drop(before);
    return SUCCESS;
}

int fake_event_query(void *handle)
{
    struct moment *moment = last_of(handle);
    const bool passed = !moment || moment_passed(moment);
    moment_drop(moment);
    return passed ? SUCCESS : NOT_READY;
}

int fake_event_wait(void *handle)
{
    struct moment *moment = last_of(handle);
    if (moment)
        moment_wait(moment);
    moment_drop(moment);
    return SUCCESS;
}

int fake_event_elapsed(float *ms, void *start_handle, void *end_handle)
{
    struct fake_event *start_event = start_handle, *end_event = end_handle;
    if (!start_event->timed || !end_event->timed)
        return INVALID_HANDLE;
    struct moment *from = last_of(start_event), *to = last_of(end_event);
    const bool known = from && to;
    const bool passed = known && moment_passed(from) && moment_passed(to);
    if (passed)
        *ms = (float)((double)moment_time(to) - (double)moment_time(from)) / 1e6f;
    moment_drop(from);
    moment_drop(to);
    if (!known)
        return INVALID_HANDLE;
    return passed ? SUCCESS : NOT_READY;
}

/* The event may be one of another context. */
int fake_stream_wait_event(void *stream_handle, void *handle, unsigned flags)
{
    struct stream *stream = stream_of(stream_handle);
    if (!stream || flags)
        return INVALID_HANDLE;
    struct moment *moment = last_of(handle);
    if (moment)
        stream_await(stream, moment);
    moment_drop(moment);
    return SUCCESS;
}

/* ---- graphs: the jobs that a stream records ---- */

int fake_capture_begin(void *handle, int mode)
{
    struct stream *stream = stream_of(handle);
    (void)mode;
    if (!stream || stream_records(stream))
        return INVALID_HANDLE;
    stream_record(stream);
    return SUCCESS;
}

int fake_capture_end(void *handle, void **graph)
{
    struct stream *stream = stream_of(handle);
    if (!stream || !stream_records(stream))
        return INVALID_HANDLE;
    *graph = stream_recorded(stream);
    objects_add(*graph);
    return SUCCESS;
}

int fake_graph_destroy(void *graph)
{
    if (!objects_remove(graph))
        return INVALID_HANDLE;
    jobs_free(graph);
    return SUCCESS;
}

int fake_graph_instantiate(void **exec, void *graph, unsigned long long flags)
{
    if (flags)
        return INVALID_VALUE;
    *exec = jobs_copy(graph);
    objects_add(*exec);
    return SUCCESS;
}

int fake_graph_launch(void *exec, void *handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream)
        return INVALID_HANDLE;
    stream_submit_jobs(stream, exec);
    return SUCCESS;
}

int fake_graph_free(void *exec)
{
    if (!objects_remove(exec))
        return INVALID_HANDLE;
    jobs_free(exec);
    return SUCCESS;
}
