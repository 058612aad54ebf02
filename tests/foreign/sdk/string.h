/* SPDX-License-Identifier: MIT */
/* string.h - as stdio.h. */
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
