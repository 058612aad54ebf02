/* SPDX-License-Identifier: MIT */
/* channel.h - the library's side of a channel: see wire.h. */
#ifndef WORKER_CHANNEL_H
#define WORKER_CHANNEL_H

#include "worker/wire.h"

/* One thread at a time uses a channel. Functions that any thread may call say so. */
struct channel {
    struct wire_channel *wire;
    struct worker *worker;
    _Atomic uint32_t *ended; /* a hint in shared memory: see struct wire */
    _Atomic uint64_t pushed; /* all units so far: `tail` with 64 bits */
    uint32_t units;          /* of the call that is being written */
};

/* Why a channel cannot be used any more: the worker has ended, it wrote an invalid position, or the
 * deadline has passed. */
enum channel_fault { CHANNEL_GOOD, CHANNEL_ENDED, CHANNEL_WILD, CHANNEL_LATE };

/* Called while the library waits: see worker_look(). True: the worker has ended. */
typedef bool channel_look(struct worker *worker);

/* Begins a call with `bytes` bytes of arguments, at most WIRE_RING / 4, and returns their place in
 * the ring. Waits for room like channel_wait(). NULL: *fault says why. */
void *channel_begin(struct channel *channel, enum wire_call call, uint32_t bytes,
                    uint64_t deadline, channel_look *look, enum channel_fault *fault);
/* Gives the call to the worker. `answered`: the worker writes a reply. */
void channel_push(struct channel *channel, bool answered);
/* Waits until all calls are done or until `deadline` (as microseconds_now(); 0: no deadline). */
enum channel_fault channel_wait(struct channel *channel, uint64_t deadline,
                                channel_look *look);
/* Whether all calls up to this position are done. Any thread may call this. */
bool channel_passed(const struct channel *channel, uint64_t position);
/* Whether the worker's position is invalid, so that channel_passed() cannot become true. Any thread
 * may call this. */
bool channel_is_wild(const struct channel *channel);
/* Waits until all calls up to this position are done. Any thread may call this. */
enum channel_fault channel_await(struct channel *channel, uint64_t position,
                                 channel_look *look);
/* Copies and validates the reply. In the copy, the status is known and the text is terminated. The
 * status is HW_INTERNAL if the reply does not have `bytes` bytes of data. */
void channel_reply(const struct channel *channel, uint32_t bytes, struct wire_reply *reply);

#endif
