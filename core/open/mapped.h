/* SPDX-License-Identifier: MIT */
/* mapped.h - which file the code in the process came from. */
#ifndef HW_OPEN_MAPPED_H
#define HW_OPEN_MAPPED_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether the library that has this function was loaded from the file `fd`, of which fstat() says
 * `file`; or from one with the same contents, as far as the system lets that be told. */
bool mapped_from(const void *function, int fd, const struct stat *file);

#endif
