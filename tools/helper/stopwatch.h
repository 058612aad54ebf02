/* SPDX-License-Identifier: MIT */
/* stopwatch.h - how much time a process had for its work, however busy the machine is: the time
 * that it waited for a processor does not count. A process that sleeps, or waits for a device, has
 * all of the time that passes; one that computes has the time of its processors. */
#ifndef HELPER_STOPWATCH_H
#define HELPER_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Times of a process and its children, the sums of all threads, in microseconds. */
struct run_times {
    uint64_t ran, waited; /* on a processor, for a processor */
    bool known;
    bool ready; /* a thread runs, or waits for a processor, at this moment */
};

struct stopwatch {
    pid_t process;
    struct run_times last; /* at the last look */
    uint64_t looked;       /* when that was */
    uint64_t passed;       /* microseconds since the start, which is what counts */
    uint64_t wall, ran, waited;
};

void stopwatch_start(struct stopwatch *stopwatch, pid_t process);
/* Brings `passed` up to date. */
void stopwatch_look(struct stopwatch *stopwatch);

#endif
