/* SPDX-License-Identifier: MIT */
/* worker.h - what is done in the process that may crash or hang: a plugin is loaded and
 * started, and its devices are opened and compute small cases of each op. */
#ifndef PROBE_WORKER_H
#define PROBE_WORKER_H

#include "open/registry.h"
#include "open/verdict.h"

#include <stdatomic.h>

/* What to probe, and how: from the arguments. */
struct request {
    const char *file;
    /* Of the file that the parent checked. */
    uint64_t device, inode, size;
    int64_t seconds, nanoseconds;
    struct settings settings;
    const char *libraries[LOADED_MAX]; /* that the application has loaded */
    uint32_t library_count;
};

/* An op that failed in the admission test: struct withdrawn without pointers. */
struct finding {
    uint32_t device, op;
    int32_t dtype[MAX_OPERANDS];
    char why[VERDICT_TEXT];
};

/* What the workers of one plugin do and find, in memory that they share with the watcher. */
struct progress {
    char text[400]; /* "while its device 1 was opened" */
    /* The case of the admission test that is under way: when it was begun, in microseconds (0:
     * there is none), the plugin's device, and the op. */
    _Atomic uint64_t begun;
    uint32_t device, op;
    /* Of each device, the number of the last case that was begun, from 1. A device that one worker
     * cannot open may be one that another can. */
    uint32_t done[MAX_DEVICES];
    _Atomic uint64_t spent; /* microseconds, on cases that came to an end */
    uint32_t tested, untested;
    uint32_t count;
    struct finding findings[VERDICT_WITHDRAWN];
};

/* Adds a finding, unless it is there already. False if there are too many. */
bool progress_add(struct progress *progress, uint32_t device, uint32_t op,
                  const int32_t dtype[MAX_OPERANDS], const char *why);

/* The exit status of a worker if an op made a device unusable, for this process at least. */
enum { DEVICE_LOST = 97 };

/* Fills the verdict, whatever happens, unless the plugin ends the process. */
void worker_run(const struct request *request, struct progress *progress,
                struct verdict *verdict);

#endif
