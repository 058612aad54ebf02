/* SPDX-License-Identifier: MIT */
/* lock.h - the file plugins.lock of a plugin directory: which files may be loaded from it. */
#ifndef HW_PROBE_LOCK_H
#define HW_PROBE_LOCK_H

#include "probe/examine.h"

/* Searches the text of a lock for the line of `file`, and stores where its digest of 64 digits
 * begins. Returns LOCK_DAMAGED, and stores the number of the line, if any line does not have the
 * right form or if a second line is for `file`. text[length] must be NUL. */
enum lock_line { LOCK_ABSENT, LOCK_PRESENT, LOCK_DAMAGED };
enum lock_line lock_find(const char *text, size_t length, const char *file,
                         const char **digest, unsigned *number);

/* If the directory in which the application found the candidate has a file plugins.lock, it must
 * list the candidate with its current contents. Otherwise stops the candidate. */
bool lock_check(const struct application *application, struct candidate *candidate,
                struct examined *examined);

#endif
