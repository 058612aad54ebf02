/* SPDX-License-Identifier: MIT */
/* shortage.h - memory that runs out: one allocation of the calling thread fails, wherever it is
 * made: in the library, in a plugin, or in the C library on behalf of either, but for the system's
 * loader. shortage.c puts its malloc() and its like in front of the C library's (glibc's), or of
 * AddressSanitizer's; not of ThreadSanitizer's, which does not bear it. */
#ifndef SHORTAGE_H
#define SHORTAGE_H

#include <stdbool.h>

/* Whether that is so; otherwise nothing ever fails. */
bool shortage_possible(void);
/* The n-th allocation of this thread from here on fails; 1: the next. Only that one. */
void shortage_begin(unsigned n);
/* From here on none fails. Whether one has. */
bool shortage_end(void);

#endif
