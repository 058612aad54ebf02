/* SPDX-License-Identifier: MIT */
/* turn.h - who is trying or binding a plugin at this moment, as marks beside the verdict on it in
 * the cache, which tell other processes, and the next start if this one ends on the way. */
#ifndef HW_OPEN_TURN_H
#define HW_OPEN_TURN_H

#include "open/candidate.h"

/* Of the processes that would try the candidate at the same time, one begins; the others find its
 * verdict when it has ended. False if another one has begun. Where nothing can be locked, all may
 * begin. */
bool turn_begin(const struct hw_context *context, struct candidate *candidate);
void turn_end(const struct hw_context *context, struct candidate *candidate);

/* Takes the verdict on the candidate out of sight, so that if this process ends or hangs while
 * the plugin is being bound, the next start finds none. Any number of threads and processes may
 * hold it at once: it is in sight again when the last of them has let go. */
void hold_begin(const struct hw_context *context, struct candidate *candidate);
/* Lets go of it; removes the verdict unless `keep`. */
void hold_end(const struct hw_context *context, struct candidate *candidate, bool keep);

/* For cache.c: whether somebody holds the verdict, or ended while holding it. */
bool hold_exists(int place, const struct candidate *candidate);
/* For cache.c: there is a new verdict under this name, or none any more. Forgets those who ended
 * while they held the one before. */
void hold_clear(int place, const char *entry);

#endif
