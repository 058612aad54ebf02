/* SPDX-License-Identifier: MIT */
/* library.h - the loader of the system: library_posix.c, library_windows.c. */
#ifndef COMMON_LIBRARY_H
#define COMMON_LIBRARY_H

#include <stddef.h>

/* NULL if it cannot be opened; `why` then gets what the system says. */
void *library_open(const char *file, char *why, size_t why_size);

/* The address of a function or object, or NULL. */
void *library_symbol(void *library, const char *name);

/* Writes the file that a symbol is in to `path`; "" if the system does not say. */
void library_path(void *symbol, char *path, size_t path_size);

#endif
