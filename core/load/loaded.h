/* SPDX-License-Identifier: MIT */
/* loaded.h - the libraries that are loaded in the process. */
#ifndef HW_LOAD_LOADED_H
#define HW_LOAD_LOADED_H

#include <stdbool.h>
#include <stddef.h>

struct dl_phdr_info; /* <link.h> with _GNU_SOURCE */

/* Like dl_iterate_phdr(), but no fork() can happen during the call: glibc (2.36) does not release
 * its lock in the child, where the next call would wait forever. */
int loaded_each(int (*see)(struct dl_phdr_info *info, size_t size, void *user), void *user);

/* Whether the process has loaded a library that the system's loader finds under this name. Stores
 * its path, which the caller frees; NULL if that is not known. */
bool loaded_find(const char *name, char **path);

/* Lists the loaded libraries that have absolute paths, up to so many, each as `before`, its name
 * and its path: "libm.so.6/lib/x86_64-linux-gnu/libm.so.6". Returns their number. The caller frees
 * the texts. */
size_t loaded_list(const char *before, char **texts, size_t most);

#endif
