/* SPDX-License-Identifier: MIT */
/* library.h - the loader of the system: library_posix.c, library_windows.c. */
#ifndef COMMON_LIBRARY_H
#define COMMON_LIBRARY_H

#include <stddef.h>

/* Returns NULL if the file cannot be opened; `why` then gets the system's message. */
void *library_open(const char *file, char *why, size_t why_size);

/* The address of a function or object, or NULL. */
void *library_symbol(void *library, const char *name);

/* Writes the path of the file that defines a symbol to `path`; "" if it is unknown. */
void library_path(void *symbol, char *path, size_t path_size);

#endif
