/* SPDX-License-Identifier: MIT */
/* loaded.h - the libraries that are loaded in the process. */
#ifndef HW_BASE_LOADED_H
#define HW_BASE_LOADED_H

#include <link.h>
#include <stddef.h>

/* Like dl_iterate_phdr(), but no fork() can happen during the call: glibc (2.36) does not release
 * its lock in the child, where the next call would wait forever. Callers define _GNU_SOURCE. */
int loaded_each(int (*see)(struct dl_phdr_info *info, size_t size, void *user), void *user);

#endif
