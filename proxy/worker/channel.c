/* SPDX-License-Identifier: MIT */
/* channel.c - the library's side of a channel. The library checks everything that the worker writes
 * before it uses it: the worker's position must lie between the oldest and the newest call. */
#include "worker/channel.h"

#include "base/likely.h"
#include "base/platform.h"
#include "worker/sleep.h"

#include <string.h>

#define NAP 100000 /* microseconds between two looks at the worker */

/* Units that the worker has not completed; more than WIRE_UNITS if its position is invalid. */
static uint32_t used(const struct channel *channel)
{
    const uint32_t head = atomic_load_explicit(&channel->wire->head, memory_order_acquire);
    return (uint32_t)atomic_load_explicit(&channel->pushed, memory_order_relaxed) - head;
}

static void nap(struct channel *channel, uint32_t before)
{
    struct wire_channel *wire = channel->wire;
    atomic_fetch_add(&wire->host_sleeps, 1);
    if (atomic_load(&wire->head) == before)
        sleep_on(&wire->head, before, NAP);
    atomic_fetch_sub(&wire->host_sleeps, 1);
}

/* Waits until at most `most` units are in use. */
static enum channel_fault wait_for(struct channel *channel, uint32_t most,
                                   uint64_t deadline, channel_look *look)
{
    struct spin spin = { 0 };
    for (;;) {
        const uint32_t now = used(channel);
        if (unlikely(now > WIRE_UNITS))
            return CHANNEL_WILD;
        if (now <= most)
            return CHANNEL_GOOD;
        if (spin_on(&spin))
            continue;
        if (look(channel->worker))
            return used(channel) <= most ? CHANNEL_GOOD : CHANNEL_ENDED;
        if (deadline && microseconds_now() >= deadline)
            return used(channel) <= most ? CHANNEL_GOOD : CHANNEL_LATE;
        nap(channel, (uint32_t)channel->pushed - now);
    }
}

enum channel_fault channel_wait(struct channel *channel, uint64_t deadline,
                                channel_look *look)
{
    return wait_for(channel, 0, deadline, look);
}

static struct wire_record *record_at(const struct channel *channel, uint64_t position)
{
    return (struct wire_record *)(void *)(channel->wire->ring +
                                          position % WIRE_UNITS * WIRE_UNIT);
}

static void advance(struct channel *channel, uint32_t units)
{
    const uint64_t next = atomic_load_explicit(&channel->pushed, memory_order_relaxed) +
                          units;
    /* Release, so that a thread that sees this value also sees a recent head: see
     * channel_is_wild(). */
    atomic_store_explicit(&channel->pushed, next, memory_order_release);
}

void *channel_begin(struct channel *channel, enum wire_call call, uint32_t bytes,
                    uint64_t deadline, channel_look *look, enum channel_fault *fault)
{
    const uint32_t units = (uint32_t)(sizeof(struct wire_record) + bytes + WIRE_UNIT - 1) /
                           WIRE_UNIT;
    const uint32_t to_end = WIRE_UNITS - (uint32_t)(channel->pushed % WIRE_UNITS);
    const uint32_t pad = units > to_end ? to_end : 0;
    if (unlikely(atomic_load_explicit(channel->ended, memory_order_relaxed)) &&
        look(channel->worker)) {
        *fault = CHANNEL_ENDED;
        return NULL;
    }
    *fault = CHANNEL_GOOD;
    /* Waits until a full ring is half empty, so that the two sides do not take turns at waiting. */
    const uint32_t most = WIRE_UNITS - units - pad;
    if (used(channel) > most &&
        (*fault = wait_for(channel, most < WIRE_UNITS / 2 ? most : WIRE_UNITS / 2, deadline,
                           look)))
        return NULL;
    if (pad) {
        *record_at(channel, channel->pushed) = (struct wire_record){ .units = pad,
                                                                     .call = WIRE_PAD };
        advance(channel, pad);
    }
    struct wire_record *record = record_at(channel, channel->pushed);
    *record = (struct wire_record){ .units = units, .call = call, .bytes = bytes };
    channel->units = units;
    return record + 1;
}

void channel_push(struct channel *channel, bool answered)
{
    struct wire_channel *wire = channel->wire;
    record_at(channel, channel->pushed)->answered = answered;
    advance(channel, channel->units);
    /* Ordered before the read of worker_sleeps: either the worker sees the call, or this thread
     * sees that the worker sleeps. */
    atomic_store(&wire->tail, (uint32_t)channel->pushed);
    /* Wakes the worker only once: it may take a while to get a processor. */
    if (atomic_load(&wire->worker_sleeps) && atomic_exchange(&wire->worker_sleeps, 0))
        wake_all(&wire->worker_sleeps);
}

bool channel_passed(const struct channel *channel, uint64_t position)
{
    /* Reads head first. In the other order, the worker could seem to be ahead of the library. */
    const uint32_t head = atomic_load(&channel->wire->head);
    const uint64_t pushed = atomic_load(&channel->pushed);
    const uint32_t left = (uint32_t)pushed - head;
    return left <= WIRE_UNITS && pushed - left >= position;
}

bool channel_is_wild(const struct channel *channel)
{
    const uint64_t before = atomic_load(&channel->pushed);
    const uint32_t head = atomic_load(&channel->wire->head);
    const uint64_t pushed = atomic_load(&channel->pushed);
    return before == pushed && (uint32_t)pushed - head > WIRE_UNITS;
}

enum channel_fault channel_await(struct channel *channel, uint64_t position,
                                 channel_look *look)
{
    struct spin spin = { 0 };
    for (;;) {
        /* Read first, so that any later progress ends the nap. */
        const uint32_t head = atomic_load(&channel->wire->head);
        if (channel_passed(channel, position))
            return CHANNEL_GOOD;
        if (channel_is_wild(channel))
            return CHANNEL_WILD;
        if (spin_on(&spin))
            continue;
        if (look(channel->worker))
            return channel_passed(channel, position) ? CHANNEL_GOOD : CHANNEL_ENDED;
        nap(channel, head);
    }
}

static bool is_status(int32_t status)
{
#define X(NAME, value, text)                                                               \
    if (status == HW_##NAME)                                                               \
        return true;
    HW_STATUSES(X)
#undef X
    return false;
}

void channel_reply(const struct channel *channel, uint32_t bytes, struct wire_reply *reply)
{
    /* The worker may write during the copy, so only the copy is used. */
    memcpy(reply, &channel->wire->reply, sizeof *reply);
    reply->text[sizeof reply->text - 1] = '\0';
    if (reply->status == HW_OK && reply->bytes == bytes)
        return;
    if (reply->status == HW_OK || !is_status(reply->status)) {
        reply->status = HW_INTERNAL;
        strcpy(reply->text,
               "the plugin's worker process (HW_WORKER) sent an invalid reply");
    }
}

_Static_assert((WIRE_UNITS & (WIRE_UNITS - 1)) == 0, "positions wrap");
