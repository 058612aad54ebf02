/* SPDX-License-Identifier: MIT */
/* line.c - the worker's side of a channel. It keeps its own position and never reads back the
 * values that it writes for the library. */
#include "server.h"

#include "base/message.h"
#include "worker/sleep.h"

#include <stdio.h>
#include <string.h>

#define NAP 1000000 /* microseconds: polls at this interval in case a wake-up is lost */

static uint32_t wait_for_tail(struct wire_channel *wire, uint32_t at)
{
    struct spin spin = { 0 };
    uint32_t tail;
    while ((tail = atomic_load_explicit(&wire->tail, memory_order_acquire)) == at) {
        if (spin_on(&spin))
            continue;
        atomic_store(&wire->worker_sleeps, 1);
        /* Waits on this word instead of tail: the library may clear it late, for an earlier
         * call. */
        if (atomic_load(&wire->tail) == at)
            sleep_on(&wire->worker_sleeps, 1, NAP);
        atomic_store(&wire->worker_sleeps, 0);
    }
    return tail;
}

/* The library orders calls of different channels: it waits for one before it makes the next.
 * ThreadSanitizer cannot see that from here, so these loads show it that finished calls come
 * first. */
static void see_what_is_done(const struct server *server)
{
#if defined(__SANITIZE_THREAD__)
    for (uint32_t i = 0; i < WIRE_CHANNELS; i++)
        (void)atomic_load(&server->done[i]);
#else
    (void)server;
#endif
}

const struct wire_record *line_take(struct server *server, uint32_t channel)
{
    struct wire_channel *wire = &server->wire->channel[channel];
    for (;;) {
        const uint32_t at = (uint32_t)atomic_load(&server->done[channel]);
        wait_for_tail(wire, at);
        see_what_is_done(server);
        const struct wire_record *record =
            (const struct wire_record *)(const void *)(wire->ring +
                                                       at % WIRE_UNITS * WIRE_UNIT);
        if (record->call != WIRE_PAD)
            return record;
        line_done(server, channel, record->units);
    }
}

void line_answer(struct server *server, uint32_t channel, const struct wire_record *record,
                 int32_t status, const void *data, uint32_t bytes)
{
    struct wire_reply *reply = &server->wire->channel[channel].reply;
    if (!record->answered)
        return;
    reply->status = status;
    reply->bytes = status ? 0 : bytes;
    reply->text[0] = '\0';
    if (status)
        snprintf(reply->text, sizeof reply->text, "%s", plugin_message());
    else if (bytes)
        memcpy(reply->data, data, bytes);
}

void line_done(struct server *server, uint32_t channel, uint32_t units)
{
    struct wire_channel *wire = &server->wire->channel[channel];
    const uint64_t done = atomic_load(&server->done[channel]) + units;
    atomic_store(&server->done[channel], done);
    /* Ordered against host_sleeps: either the library sees the new head, or this thread sees that
     * it sleeps. */
    atomic_store(&wire->head, (uint32_t)done);
    if (atomic_load(&wire->host_sleeps))
        wake_all(&wire->head);
}

void line_await(struct server *server, uint32_t channel, uint64_t position)
{
    struct wire_channel *wire = &server->wire->channel[channel];
    struct spin spin = { 0 };
    while (channel < WIRE_CHANNELS && atomic_load(&server->done[channel]) < position) {
        if (spin_on(&spin))
            continue;
        const uint32_t head = atomic_load(&wire->head);
        atomic_fetch_add(&wire->host_sleeps, 1);
        if (atomic_load(&server->done[channel]) < position)
            sleep_on(&wire->head, head, NAP);
        atomic_fetch_sub(&wire->host_sleeps, 1);
    }
}
