/* SPDX-License-Identifier: MIT */
/* late.h - the deadlines of calls, for the watcher of the plugin's process: HW_WORKER_TIMEOUT, and
 * HW_PROBE_TIMEOUT for calls that close something. */
#ifndef HW_WORKER_LATE_H
#define HW_WORKER_LATE_H

#include "worker/wire.h"

struct late {
    const struct wire *wire;
    uint32_t seconds, closing; /* for a call, and for one that closes; 0: no limit */
    uint64_t period;           /* microseconds between two looks */
    uint64_t looked;
    struct {
        uint32_t head;
        bool busy;
        uint64_t age; /* of the call at `head`, in microseconds */
    } channel[WIRE_CHANNELS];
    char text[256];
};

void late_begin(struct late *late, const struct wire *wire,
                const struct settings *settings);
/* Whether it is time to look. */
bool late_is_due(const struct late *late);
/* Looks if it is time to. Since the last look, the plugin's process had at most `most`
 * microseconds. Returns `text`, the reason why the process must be stopped; NULL if no call takes
 * too long. */
const char *late_look(struct late *late, uint64_t most);

#endif
