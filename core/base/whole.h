/* SPDX-License-Identifier: MIT */
/* whole.h - all of so many bytes, whatever interrupts. It stands alone: plugins and the command use
 * it, too. */
#ifndef HW_BASE_WHOLE_H
#define HW_BASE_WHOLE_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* False if the file ends before, or at an error: errno is then that of read(). */
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

/* False at an error: errno is that of write(). */
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
