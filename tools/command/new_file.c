/* SPDX-License-Identifier: MIT */
/* new_file.c - see new_file.h. */
#define _GNU_SOURCE
#include "new_file.h"

#include "base/whole.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Gives the file its name unless that is taken. Where hard links are not supported, an empty file
 * reserves the name first, because rename() would replace another file. */
static bool take_name(const char *part, const char *path)
{
    if (link(part, path) == 0)
        return unlink(part) == 0;
    if (errno != EPERM && errno != EOPNOTSUPP)
        return false;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0 && rename(part, path) == 0;
}

bool new_file_write(const char *path, unsigned mode, bool replace, const char *bytes,
                    size_t size)
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
    bool good = fchmod(fd, (mode_t)mode) == 0 && write_whole(fd, bytes, size) &&
                fsync(fd) == 0;
    good = close(fd) == 0 && good &&
           (replace ? rename(part, path) == 0 : take_name(part, path));
    if (good)
        return true;
    complain("%s: %s", path,
             errno == EEXIST && !replace ? "exists; --force replaces it" : strerror(errno));
    unlink(part);
    return false;
}
