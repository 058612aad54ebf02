/* SPDX-License-Identifier: MIT */
/* new_file.c - see new_file.h. */
#define _GNU_SOURCE
#include "new_file.h"

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        const ssize_t some = write(fd, bytes, size);
        if (some < 0 && errno != EINTR)
            return false;
        bytes += some > 0 ? some : 0;
        size -= some > 0 ? (size_t)some : 0;
    }
    return fchmod(fd, 0644) == 0 && fsync(fd) == 0;
}

/* link() does not replace a file that is there; rename() does. */
static bool give_name(const char *part, const char *path, bool replace)
{
    return replace ? rename(part, path) == 0 : link(part, path) == 0 && unlink(part) == 0;
}

bool new_file_write(const char *path, bool replace, const char *bytes, size_t size)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s.XXXXXX", path) >= (int)sizeof part) {
        complain("%s: %s", path, strerror(ENAMETOOLONG));
        return false;
    }
    const int fd = mkostemp(part, O_CLOEXEC);
    if (fd < 0) {
        complain("%s: cannot be created: %s", path, strerror(errno));
        return false;
    }
    bool good = write_all(fd, bytes, size);
    good = close(fd) == 0 && good && give_name(part, path, replace);
    if (good)
        return true;
    complain("%s: %s", path,
             errno == EEXIST && !replace ? "exists; --force replaces it" : strerror(errno));
    unlink(part);
    return false;
}
