/* SPDX-License-Identifier: MIT */
/* library.h - gives the file that was checked to the system's loader. */
#ifndef HW_OPEN_LIBRARY_H
#define HW_OPEN_LIBRARY_H

#include "open/candidate.h"

/* Loads candidate->fd. Returns what dlopen() returns, which is never closed; or NULL, and the
 * candidate is stopped. */
void *library_load(struct candidate *candidate);

#endif
