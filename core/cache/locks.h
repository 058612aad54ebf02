/* SPDX-License-Identifier: MIT */
/* locks.h - who is trying or binding a plugin at this moment. Other processes see it, and so does
 * the next start if this process ends meanwhile. */
#ifndef HW_CACHE_LOCKS_H
#define HW_CACHE_LOCKS_H

#include "open/candidate.h"

/* The file of all locks, beside the entries. It begins with LOCKS_MAX numbers of 64 bits, one for
 * each thread that is binding a plugin: cache_number() of the entry, or 0. */
#define LOCKS_FILE ".locks"
#define LOCKS_MAX  512

/* If several processes are about to try the candidate, one begins; the others later find its
 * verdict. Returns false if another process has begun. If locks do not work, all begin. */
bool probe_lock(const struct hw_context *context, struct candidate *candidate);
void probe_unlock(struct candidate *candidate);

/* Hides the candidate's verdict. If this process ends or hangs while it binds the plugin, the next
 * start finds no verdict. Any number of threads and processes may do this at once; the verdict is
 * visible again when the last of them calls bind_unlock(). */
void bind_lock(const struct hw_context *context, struct candidate *candidate);
/* Ends this thread's lock. Without `keep`, removes the verdict. */
void bind_unlock(const struct hw_context *context, struct candidate *candidate, bool keep);

/* Whether a thread binds the candidate, or its process ended while it did. `place` is the open
 * directory of the entries. */
bool bind_is_locked(int place, const struct candidate *candidate);
/* For probe/store.c: forgets processes that ended while they bound the candidate. */
void bind_forgive(int place, const struct candidate *candidate);

#endif
