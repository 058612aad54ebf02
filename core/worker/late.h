/* SPDX-License-Identifier: MIT */
/* late.h - the deadline of a call, for whoever watches over the plugin's process:
 * HW_WORKER_TIMEOUT, and HW_PROBE_TIMEOUT of one that closes something. */
#ifndef HW_WORKER_LATE_H
#define HW_WORKER_LATE_H

#include "worker/wire.h"

struct late {
    const struct wire *wire;
    uint32_t seconds, closing; /* that a call may take, and one that closes; 0: any time */
    uint64_t period;           /* microseconds from one look to the next */
    uint64_t looked;
    struct {
        uint32_t head;
        bool busy;
        uint64_t age; /* microseconds, of the call at `head` */
    } channel[WIRE_CHANNELS];
    char text[256];
};

void late_begin(struct late *late, const struct wire *wire,
                const struct settings *settings);
/* Whether it is time to look. */
bool late_is_due(const struct late *late);
/* Looks, if it is. Why the process has to be stopped, in `text`; NULL: no call takes too long. */
const char *late_look(struct late *late);

#endif
