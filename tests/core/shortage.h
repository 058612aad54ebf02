/* SPDX-License-Identifier: MIT */
/* shortage.h - simulates a memory shortage: one allocation of the calling thread fails, in the
 * library, in a plugin or in the C library, but not in the dynamic loader. shortage.c replaces
 * malloc() and its relatives of glibc or AddressSanitizer. ThreadSanitizer does not allow it. */
#ifndef SHORTAGE_H
#define SHORTAGE_H

#include <stdbool.h>

/* False if allocations cannot be made to fail in this build. */
bool shortage_possible(void);
/* Makes the n-th allocation of this thread from now on fail, and only that one. 1: the next. */
void shortage_begin(unsigned n);
/* Ends the shortage. Returns whether an allocation has failed. */
bool shortage_end(void);

#endif
