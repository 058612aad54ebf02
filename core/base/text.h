/* SPDX-License-Identifier: MIT */
/* text.h - formatting into memory of its own, and the nearest of some names. */
#ifndef HW_BASE_TEXT_H
#define HW_BASE_TEXT_H

#include <stddef.h>

/* The caller frees it. NULL: out of memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The name in `list` nearest to `name`, or NULL if none is near. */
const char *nearest(const char *name, const char *const *list, size_t count);

#endif
