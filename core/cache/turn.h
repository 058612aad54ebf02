/* SPDX-License-Identifier: MIT */
/* turn.h - who is trying or binding a plugin at this moment: marks beside its verdict in the cache.
 * Other processes see them, and so does the next start if this process ends meanwhile. */
#ifndef HW_CACHE_TURN_H
#define HW_CACHE_TURN_H

#include "cache/cache.h"

/* If several processes are about to try the candidate, one begins; the others later find its
 * verdict. Returns false if another process has begun. If locks do not work, all begin. */
bool turn_begin(const struct hw_context *context, struct candidate *candidate);
void turn_end(const struct hw_context *context, struct candidate *candidate);

/* Hides the candidate's verdict. If this process ends or hangs while it binds the plugin, the next
 * start finds no verdict. Any number of threads and processes may hold a verdict at once; it is
 * visible again when the last of them calls hold_end(). */
void hold_begin(const struct hw_context *context, struct candidate *candidate);
/* Ends this thread's hold. Without `keep`, removes the verdict. */
void hold_end(const struct hw_context *context, struct candidate *candidate, bool keep);

/* For cache.c: whether a thread holds the verdict, or its process ended while it did. */
bool hold_exists(int place, const struct candidate *candidate);

/* For probe/store.c: opens the directory of the threads that hold the entry of this name; with
 * `make`, creates it. -1 if there is none. */
int hold_open(int place, const char *held, bool make);
/* The name of a file that belongs to an entry. */
void cache_name_with(const char *entry, const char *ending, char name[CACHE_NAME_CHARS]);

#endif
