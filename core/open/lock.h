/* SPDX-License-Identifier: MIT */
/* lock.h - the file plugins.lock of a plugin directory: which files may be loaded from it. */
#ifndef HW_OPEN_LOCK_H
#define HW_OPEN_LOCK_H

#include "open/candidate.h"

/* Searches the text of a lock for the line of `file`, and stores where its digest of 64 digits
 * begins. Returns LOCK_DAMAGED if any line does not have the right form, whatever its file, or
 * if two are for `file`, and stores the number of that line. text[length] must be NUL. */
enum lock_line { LOCK_ABSENT, LOCK_PRESENT, LOCK_DAMAGED };
enum lock_line lock_find(const char *text, size_t length, const char *file,
                         const char **digest, unsigned *number);

/* If the directory in which the candidate was found has a file plugins.lock, the candidate
 * must be in it, with the bytes that it has now. Stops the candidate if it is not. */
bool lock_check(struct hw_context *context, struct candidate *candidate);

#endif
