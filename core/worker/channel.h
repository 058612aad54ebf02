/* SPDX-License-Identifier: MIT */
/* channel.h - the library's side of a channel: see wire.h. */
#ifndef HW_WORKER_CHANNEL_H
#define HW_WORKER_CHANNEL_H

#include "worker/wire.h"

/* A channel is used by one thread at a time, except where it says that any thread may. */
struct channel {
    struct wire_channel *wire;
    struct worker *worker;
    _Atomic uint32_t *ended; /* in memory that both have: a hint */
    _Atomic uint64_t pushed; /* units since the beginning of time: tail, with more bits */
    uint32_t units;          /* of the call that has begun */
};

/* Why a channel cannot be used any more: the worker is gone, what it wrote makes no sense, or the
 * deadline has passed. */
enum channel_fault { CHANNEL_GOOD, CHANNEL_ENDED, CHANNEL_WILD, CHANNEL_LATE };

/* Asked while the library waits; see link.c. True: the worker has ended. */
typedef bool channel_look(struct worker *worker);

/* Room for a call with so many bytes of arguments, at most WIRE_RING / 4; waits until the ring has
 * it, as channel_wait() does. NULL: *fault says why. */
void *channel_begin(struct channel *channel, enum wire_call call, uint32_t bytes,
                    uint64_t deadline, channel_look *look, enum channel_fault *fault);
/* Gives the call to the worker. `answered`: it writes a reply. */
void channel_push(struct channel *channel, bool answered);
/* Waits until all calls are done, at most until `deadline` (microseconds_now(); 0: for ever). */
enum channel_fault channel_wait(struct channel *channel, uint64_t deadline,
                                channel_look *look);
/* Whether the calls up to this one are done. Any thread may ask. */
bool channel_passed(const struct channel *channel, uint64_t position);
/* Whether what the worker wrote makes no sense, so that it will never be so. Any thread may ask. */
bool channel_is_wild(const struct channel *channel);
/* Waits until the calls up to this one are done. Any thread may. */
enum channel_fault channel_await(struct channel *channel, uint64_t position,
                                 channel_look *look);
/* A copy of the reply, in which all is as it should be: the status is known, the text ends, and
 * there are as many bytes of data as expected, or the status is HW_INTERNAL. */
void channel_reply(const struct channel *channel, uint32_t bytes, struct wire_reply *reply);

#endif
