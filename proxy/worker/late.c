/* SPDX-License-Identifier: MIT */
/* late.c - finds calls that take too long. Each call has its own deadline, which begins when the
 * plugin begins the call. So a long chain of ops is not late, nor is a queue that waits for work of
 * another queue.
 *
 * Time does not count while this process does not run: the machine is suspended, the processes are
 * frozen, or they get no processor. Nor does time in which the plugin's process waits for a
 * processor, as far as the caller knows. */
#include "worker/late.h"

#include "base/platform.h"

#include <stdio.h>
#include <string.h>

enum { SECOND = 1000000, LOOKS = 8 /* the fewest looks before a call is late */ };

/* The slot of the plugin's table for each call. */
static const char *const slots[WIRE_CALL_COUNT] = {
    [WIRE_CLOSE] = "close",
    [WIRE_DEVICE_INFO] = "device_info",
    [WIRE_DEVICE_OPEN] = "device_open",
    [WIRE_DEVICE_CLOSE] = "device_close",
    [WIRE_QUEUE_OPEN] = "queue_open",
    [WIRE_QUEUE_CLOSE] = "queue_close",
    [WIRE_WAIT] = "queue_wait",
    [WIRE_ALLOC] = "buffer_alloc",
    [WIRE_SHARE] = "buffer_import",
    [WIRE_FREE] = "buffer_free",
    [WIRE_TRANSFER] = "transfer",
    [WIRE_SUPPORTS] = "supports",
    [WIRE_KERNEL_INFO] = "kernel_info",
    [WIRE_PACK_SIZE] = "pack_size",
    [WIRE_PACK] = "pack",
    [WIRE_GRAPH_NODE] = "a node of a graph",
    [WIRE_GRAPH_BUILD] = "graph_build",
    [WIRE_GRAPH_LAUNCH] = "graph_launch",
    [WIRE_GRAPH_DESTROY] = "graph_destroy",
    [WIRE_EVENT_CREATE] = "event_create",
    [WIRE_EVENT_DESTROY] = "event_destroy",
    [WIRE_EVENT_RECORD] = "event_record",
    [WIRE_EVENT_WAIT] = "event_wait",
    [WIRE_EVENT_QUERY] = "event_query",
    [WIRE_EVENT_SYNC] = "event_sync",
    [WIRE_EVENT_ELAPSED] = "event_elapsed",
};

static const char *const ops[HW_OP_COUNT] = {
#define X(NAME, name) #name,
    HW_OPS(X)
#undef X
};

/* The part of a call that matters here. */
struct call {
    uint32_t call;
    union {
        struct wire_op op;
        struct wire_event event;
    } arguments;
};

/* Copies the call, because the plugin may write to the ring at the same time. A wrong value can
 * only affect whether the process is stopped, and the message. */
static struct call call_at(const struct late *late, uint32_t channel)
{
    const uint32_t head = late->channel[channel].head;
    const volatile unsigned char *at = late->wire->channel[channel].ring +
                                       head % WIRE_UNITS * WIRE_UNIT;
    unsigned char bytes[WIRE_UNIT];
    struct wire_record record;
    struct call call;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = at[i];
    memcpy(&record, bytes, sizeof record);
    memcpy(&call.arguments, bytes + sizeof record, sizeof call.arguments);
    call.call = record.call;
    return call;
}

static const char *name_of(const struct call *call)
{
    const char *name = call->call < WIRE_CALL_COUNT ? slots[call->call] : NULL;
    if (call->call == WIRE_OP && call->arguments.op.op < HW_OP_COUNT)
        return ops[call->arguments.op.op];
    return name ? name : "a call";
}

static bool closes(const struct call *call)
{
    return call->call == WIRE_CLOSE || call->call == WIRE_DEVICE_CLOSE ||
           call->call == WIRE_QUEUE_CLOSE;
}

/* Whether the call waits for an event that another queue has not recorded yet. Only the calls of
 * that queue can be late. */
static bool waits_for_other(const struct late *late, const struct call *call)
{
    const struct wire_event *event = &call->arguments.event;
    if (call->call != WIRE_EVENT_WAIT || event->channel >= WIRE_CHANNELS)
        return false;
    const uint32_t head = atomic_load(&late->wire->channel[event->channel].head);
    return (int32_t)((uint32_t)event->position - head) > 0;
}

/* Updates the age of the channel's current call; `passed` is the time since the last look. */
static void look_at(struct late *late, uint32_t channel, uint64_t passed)
{
    const struct wire_channel *wire = &late->wire->channel[channel];
    const uint32_t head = atomic_load(&wire->head), before = late->channel[channel].head;
    const bool busy = atomic_load(&wire->tail) != head,
               same = busy && late->channel[channel].busy && head == before;
    late->channel[channel].head = head;
    late->channel[channel].busy = busy;
    const struct call call = call_at(late, channel);
    if (!same)
        late->channel[channel].age = 0;
    else if (!waits_for_other(late, &call))
        late->channel[channel].age += passed;
}

/* Says that the call is late; NULL if it is not. */
static const char *words_about(struct late *late, uint32_t channel)
{
    const struct call call = call_at(late, channel);
    const bool closing = closes(&call);
    const uint32_t seconds = closing ? late->limits.closing : late->limits.call;
    if (!seconds || late->channel[channel].age < seconds * UINT64_C(1000000))
        return NULL;
    snprintf(late->text, sizeof late->text, "%s had not returned after %u second%s (%s)",
             name_of(&call), seconds, seconds == 1 ? "" : "s",
             closing ? "HW_PROBE_TIMEOUT" : "HW_WORKER");
    return late->text;
}

static uint32_t channels_in_use(const struct wire *wire)
{
    const uint32_t lanes = atomic_load(&wire->lanes), most = WIRE_CHANNELS - WIRE_QUEUES;
    return WIRE_QUEUES + (lanes < most ? lanes : most);
}

bool late_is_due(const struct late *late)
{
    return microseconds_now() - late->looked >= late->period;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

const char *late_look(struct late *late, uint64_t most)
{
    const uint64_t now = microseconds_now(), since = now - late->looked,
                   passed = smaller(most, smaller(since, 2 * late->period));
    const char *words = NULL;
    if (since < late->period)
        return NULL;
    late->looked = now;
    for (uint32_t i = 0; i < channels_in_use(late->wire) && !words; i++) {
        look_at(late, i, passed);
        words = words_about(late, i);
    }
    return words;
}

void late_begin(struct late *late, const struct wire *wire,
                const struct late_limits *limits)
{
    const uint32_t least = limits->call && limits->call < limits->closing ? limits->call
                                                                          : limits->closing;
    *late = (struct late){ .wire = wire,
                           .limits = *limits,
                           .period = least < LOOKS ? least * SECOND / LOOKS : SECOND,
                           .looked = microseconds_now() };
}

_Static_assert(sizeof(struct wire_record) + sizeof(struct wire_event) <= WIRE_UNIT &&
                   sizeof(struct wire_record) + sizeof(struct wire_op) <= WIRE_UNIT,
               "struct call is within one unit");
