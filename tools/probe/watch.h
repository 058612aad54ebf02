/* SPDX-License-Identifier: MIT */
/* watch.h - watches over the process of a plugin: its deadline, its end, what it prints, what
 * it leaves behind. If an op ends it, the plugin is started again, for the others. */
#ifndef PROBE_WATCH_H
#define PROBE_WATCH_H

#include "worker.h"

/* Runs worker_run() in a process of its own. Afterwards that process and all that it started
 * are gone. Sets the verdict's bytes, which the caller frees; false: out of memory. */
bool watch(const struct request *request, unsigned char **bytes, size_t *size);

#endif
