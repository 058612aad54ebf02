/* SPDX-License-Identifier: MIT */
/* late.h - the deadlines of calls, for the watcher of the plugin's process: those of HW_WORKER, and
 * HW_PROBE_TIMEOUT for calls that close something. */
#ifndef WORKER_LATE_H
#define WORKER_LATE_H

#include "worker/wire.h"

/* The seconds of a call, and of one that closes something; 0: no limit. */
struct late_limits {
    uint32_t call, closing;
};

struct late {
    const struct wire *wire;
    struct late_limits limits;
    uint64_t period; /* microseconds between two looks */
    uint64_t looked;
    struct {
        uint32_t head;
        bool busy;
        uint64_t age; /* of the call at `head`, in microseconds */
    } channel[WIRE_CHANNELS];
    char text[256];
};

void late_begin(struct late *late, const struct wire *wire,
                const struct late_limits *limits);
/* Whether it is time to look. */
bool late_is_due(const struct late *late);
/* Looks if it is time to. Since the last look, the plugin's process had at most `most`
 * microseconds. Returns `text`, the reason why the process must be stopped; NULL if no call takes
 * too long. */
const char *late_look(struct late *late, uint64_t most);

#endif
