/* SPDX-License-Identifier: MIT */
/* sleep.h - waits for a word in memory that another process may share. */
#ifndef HW_BASE_SLEEP_H
#define HW_BASE_SLEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns at once if the word has another value, else when it is woken, or after so long. It may
 * also return early. */
void sleep_on(_Atomic uint32_t *word, uint32_t value, uint32_t microseconds);
/* Wakes all that sleep on the word, in every process. */
void wake_all(_Atomic uint32_t *word);

/* Busy waiting, for a wait that is expected to be short: where there is only one processor, for no
 * time at all. */
struct spin {
    uint64_t end;
    uint32_t turns;
};
/* False when it is time to sleep. */
bool spin_on(struct spin *spin);

#endif
