/* SPDX-License-Identifier: MIT */
/* event.c - events. The calls that record an event, or make a queue wait for it, are not waited
 * for. So a query about an event first checks that these calls are done. */
#include "worker/remote.h"

#include <stdlib.h>

/* A call in a queue. */
struct place {
    struct channel *channel; /* NULL: none */
    uint64_t position;       /* the end of the call */
};

enum { WAITS = 4 };

struct remote_event {
    struct worker *worker;
    uint32_t id, device;
    pthread_mutex_t lock; /* threads may share an event */
    struct place record;
    struct place waits[WAITS]; /* calls that the event must outlive */
    uint32_t next;
};

static int32_t ask_with(const struct remote_event *event, struct question question,
                        const struct wire_event *arguments)
{
    question.arguments = arguments;
    question.bytes = sizeof *arguments;
    return worker_ask(event->worker, &question);
}

static int32_t ask(const struct remote_event *event, uint32_t channel, enum wire_call call)
{
    return ask_with(event, (struct question){ .channel = channel, .call = call },
                    &(struct wire_event){ .event = event->id });
}

/* ---- calls in the queues ---- */

static bool is_done(const struct place *place)
{
    return !place->channel || channel_passed(place->channel, place->position);
}

/* HW_OK, or HW_LOST. */
static int32_t await(const struct remote_event *event, const struct place *place)
{
    return place->channel
               ? worker_fault(event->worker,
                              channel_await(place->channel, place->position, worker_look))
               : HW_OK;
}

/* HW_NOT_READY; or HW_LOST if the worker has ended or its position is invalid. */
static int32_t not_done(const struct remote_event *event, const struct place *place)
{
    if (place->channel && channel_is_wild(place->channel))
        return worker_fault(event->worker, CHANNEL_WILD);
    return worker_look(event->worker) ? worker_lost(event->worker) : HW_NOT_READY;
}

static struct place record_of(struct remote_event *event)
{
    pthread_mutex_lock(&event->lock);
    const struct place place = event->record;
    pthread_mutex_unlock(&event->lock);
    return place;
}

static int32_t push(struct remote_queue *queue, enum wire_call call,
                    const struct wire_event *event, struct place *place)
{
    int32_t status;
    struct wire_event *arguments = remote_begin(queue, call, sizeof *event, &status);
    if (!arguments)
        return status;
    *arguments = *event;
    remote_push(queue);
    *place = (struct place){ queue->channel, queue->channel->pushed };
    return HW_OK;
}

/* ---- the functions of the table ---- */

int32_t remote_event_create(void *of, uint32_t flags, void **event)
{
    const struct remote_device *device = of;
    const struct wire_event arguments = { .device = device->index, .flags = flags };
    struct remote_event *made = calloc(1, sizeof *made);
    if (!made)
        return worker_fail(device->worker, HW_NO_MEMORY, "out of memory for an event");
    made->worker = device->worker;
    made->device = device->index;
    const int32_t status = ask_with(made,
                                    (struct question){ .channel = WIRE_CONTROL,
                                                       .call = WIRE_EVENT_CREATE,
                                                       .data = &made->id,
                                                       .data_bytes = sizeof made->id },
                                    &arguments);
    if (status) {
        free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    *event = made;
    return HW_OK;
}

void remote_event_destroy(void *of)
{
    struct remote_event *event = of;
    bool good = !await(event, &event->record);
    for (int i = 0; i < WAITS && good; i++)
        good = !await(event, &event->waits[i]);
    const struct wire_event arguments = { .event = event->id };
    worker_tell(event->worker, &(struct question){ .channel = WIRE_CONTROL,
                                                   .call = WIRE_EVENT_DESTROY,
                                                   .arguments = &arguments,
                                                   .bytes = sizeof arguments });
    pthread_mutex_destroy(&event->lock);
    free(event);
}

int32_t remote_event_record(void *of, void *queue)
{
    struct remote_event *event = of;
    struct place place;
    const int32_t status = push(queue, WIRE_EVENT_RECORD,
                                &(struct wire_event){ .event = event->id }, &place);
    if (status)
        return status;
    pthread_mutex_lock(&event->lock);
    event->record = place;
    pthread_mutex_unlock(&event->lock);
    return HW_OK;
}

int32_t remote_event_wait(void *queue, void *of)
{
    struct remote_event *event = of;
    const struct place record = record_of(event);
    struct place place;
    if (!record.channel)
        return HW_OK;
    const struct wire_event arguments = { .event = event->id,
                                          .channel = (uint32_t)(record.channel -
                                                                event->worker->channel),
                                          .position = record.position };
    int32_t status = push(queue, WIRE_EVENT_WAIT, &arguments, &place);
    if (status)
        return status;
    pthread_mutex_lock(&event->lock);
    struct place *slot = &event->waits[event->next++ % WAITS];
    const struct place oldest = *slot;
    *slot = place;
    pthread_mutex_unlock(&event->lock);
    return await(event, &oldest);
}

int32_t remote_event_sync(void *of)
{
    struct remote_event *event = of;
    const struct place record = record_of(event);
    const int32_t status = await(event, &record);
    return status ? status : ask(event, WIRE_EVENTS, WIRE_EVENT_SYNC);
}

int32_t remote_event_query(void *of)
{
    struct remote_event *event = of;
    const struct place record = record_of(event);
    if (is_done(&record))
        return ask(event, WIRE_CONTROL, WIRE_EVENT_QUERY);
    return not_done(event, &record);
}

int32_t remote_event_elapsed(void *start, void *end, double *ms)
{
    struct remote_event *from = start, *to = end;
    const struct place first = record_of(from), last = record_of(to);
    if (!is_done(&first) || !is_done(&last))
        return not_done(from, is_done(&first) ? &last : &first);
    return ask_with(from,
                    (struct question){ .channel = WIRE_CONTROL,
                                       .call = WIRE_EVENT_ELAPSED,
                                       .data = ms,
                                       .data_bytes = sizeof *ms },
                    &(struct wire_event){ .event = from->id, .end = to->id });
}
