/* SPDX-License-Identifier: MIT */
/* worker.h - what is done in the process that may crash or hang: a plugin is loaded and
 * started, and its devices are opened. */
#ifndef PROBE_WORKER_H
#define PROBE_WORKER_H

#include "open/verdict.h"

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

/* What the worker does at the moment, in memory that it shares with the watcher. */
struct progress {
    char text[256]; /* "while its device 1 was opened" */
};

/* Fills the verdict, whatever happens, unless the plugin ends the process. */
void worker_run(const struct request *request, struct progress *progress,
                struct verdict *verdict);

#endif
