/* SPDX-License-Identifier: MIT */
/* library.h - makes the system's loader load the very file that was checked. */
#ifndef HW_LOAD_LIBRARY_H
#define HW_LOAD_LIBRARY_H

#include "open/candidate.h"

/* Loads candidate->fd. Returns the handle from dlopen(), which is never closed; or stops the
 * candidate and returns NULL. */
void *library_load(struct candidate *candidate);

/* Whether the address is in a loaded library's code. */
bool library_is_code(void *address);

/* Whether memory or descriptors ran out, by the text of dlerror(): the system's loader gives its
 * reason only as text. */
bool loader_lacks_memory(const char *error);

/* Stops the candidate, because no library that it is linked with defines this symbol of so many
 * bytes. Returns false. */
bool library_not_linked(struct candidate *candidate, const char *symbol, size_t length);

#endif
