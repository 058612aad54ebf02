/* SPDX-License-Identifier: MIT */
/* mapped.h - which file the code in the process came from. */
#ifndef HW_OPEN_MAPPED_H
#define HW_OPEN_MAPPED_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether the library that has this function was loaded from the file `fd` or, where the system
 * cannot tell, from a file with the same contents. `file` is the result of fstat(). */
bool mapped_from(const void *function, int fd, const struct stat *file);

#endif
