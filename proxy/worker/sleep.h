/* SPDX-License-Identifier: MIT */
/* sleep.h - waits for a change of a word in memory that processes may share. */
#ifndef WORKER_SLEEP_H
#define WORKER_SLEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleeps while the word has this value, until wake_all() or the end of the time. May return
 * early. */
void sleep_on(_Atomic uint32_t *word, uint32_t value, uint32_t microseconds);
/* Wakes all threads that sleep on the word, in every process. */
void wake_all(_Atomic uint32_t *word);

/* Busy waiting, for a wait that is expected to be short. With a single processor it does not
 * wait. */
struct spin {
    uint64_t end;
    uint32_t turns;
};
/* False when it is time to sleep. */
bool spin_on(struct spin *spin);

#endif
