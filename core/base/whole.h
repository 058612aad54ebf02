/* SPDX-License-Identifier: MIT */
/* whole.h - reads and writes exactly so many bytes, across interruptions. It includes nothing of
 * the library: plugins and the command use it, too. */
#ifndef HW_BASE_WHOLE_H
#define HW_BASE_WHOLE_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* False if the file ends early, or on an error, with errno from read(). */
static inline bool read_whole(int fd, void *to, size_t bytes)
{
    char *at = (char *)to;
    while (bytes > 0) {
        const ssize_t n = read(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* False on an error, with errno from write(). */
static inline bool write_whole(int fd, const void *from, size_t bytes)
{
    const char *at = (const char *)from;
    while (bytes > 0) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

#endif
