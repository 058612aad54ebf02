/* SPDX-License-Identifier: MIT */
/* lock.c - the file plugins.lock of a plugin directory: which files may be loaded from it.
 *
 * Its lines are the output of sha256sum: the digest, a blank, a blank or '*', and the name of a
 * file in this directory. */
#define _POSIX_C_SOURCE 200809L
#include "probe/lock.h"

#include "load/trust.h"
#include "probe/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_MAX   ((size_t)1 << 18) /* more than a thousand plugins */
#define NAME_START (DIGEST_TEXT + 2)

struct lock {
    char *path;
    char *text; /* its contents, NUL-terminated */
    size_t length;
};

/* Whether `line` has the form of a line, without the newline. */
static bool is_entry(const char *line, size_t length)
{
    return length > NAME_START && strspn(line, "0123456789abcdef") == DIGEST_TEXT &&
           line[DIGEST_TEXT] == ' ' &&
           (line[DIGEST_TEXT + 1] == ' ' || line[DIGEST_TEXT + 1] == '*') &&
           !memchr(line + NAME_START, '/', length - NAME_START);
}

enum lock_line lock_find(const char *text, size_t length, const char *file,
                         const char **digest, unsigned *number)
{
    const size_t name = strlen(file);
    const char *end = text + length;
    enum lock_line found = LOCK_ABSENT;
    *number = 1;
    for (; text < end; (*number)++) {
        const size_t bytes = strcspn(text, "\n");
        if (text[bytes] != '\n' || !is_entry(text, bytes))
            return LOCK_DAMAGED;
        if (bytes == NAME_START + name && memcmp(text + NAME_START, file, name) == 0) {
            if (found == LOCK_PRESENT)
                return LOCK_DAMAGED;
            found = LOCK_PRESENT;
            *digest = text;
        }
        text += bytes + 1;
    }
    return found;
}

static bool read_lock(struct candidate *candidate, struct lock *lock, int fd)
{
    lock->text = malloc(LOCK_MAX + 1);
    if (!lock->text)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    ssize_t count;
    while (lock->length <= LOCK_MAX &&
           (count = pread(fd, lock->text + lock->length, LOCK_MAX + 1 - lock->length,
                          (off_t)lock->length)) != 0) {
        if (count < 0 && errno != EINTR)
            return stop(candidate, REASON_UNREADABLE, "%s: %s", lock->path,
                        strerror(errno));
        lock->length += count > 0 ? (size_t)count : 0;
    }
    if (lock->length > LOCK_MAX)
        return stop(candidate, REASON_BAD_LOCK, "%s has more than %zu bytes", lock->path,
                    LOCK_MAX);
    lock->text[lock->length] = '\0';
    return true;
}

static bool lock_compare(struct candidate *candidate, const struct lock *lock,
                         const char *file, bool *locked)
{
    const char *digest = NULL;
    char actual[DIGEST_TEXT + 1];
    unsigned number;
    struct stat info;
    switch (lock_find(lock->text, lock->length, file, &digest, &number)) {
    case LOCK_DAMAGED:
        return stop(candidate, REASON_BAD_LOCK,
                    "%s: line %u is not a digest and a file name, or repeats a file name",
                    lock->path, number);
    case LOCK_ABSENT:
        return stop(candidate, REASON_NOT_LOCKED, "%s does not list it", lock->path);
    case LOCK_PRESENT:
        break;
    }
    if (fstat(candidate->fd, &info))
        return stop(candidate, REASON_UNREADABLE, NULL);
    const int error = digest_file(candidate->fd, (uint64_t)info.st_size, actual);
    if (error)
        return stop(candidate, error == EFBIG ? REASON_CHANGED_FILE : REASON_UNREADABLE,
                    NULL);
    *locked = memcmp(actual, digest, DIGEST_TEXT) == 0;
    return *locked || stop(candidate, REASON_LOCK_MISMATCH,
                           "%s lists the digest %.16s..., it has %.16s...", lock->path,
                           digest, actual);
}

/* Opens the lock. Returns -1 if there is none; or if opening fails, which stops the candidate. */
static int open_lock(const struct application *application, struct candidate *candidate,
                     const char *path)
{
    struct distrust why;
    struct stat info;
    if (lstat(path, &info) && (errno == ENOENT || errno == ENOTDIR))
        return -1;
    const int fd = trust_open(path, application->trust, NULL, &why);
    if (fd < 0)
        stop(candidate, why.reason, "%s: %s", path, why.message);
    return fd;
}

bool lock_check(const struct application *application, struct candidate *candidate,
                struct examined *examined)
{
    const char *slash = strrchr(application->path, '/');
    struct lock lock = { .path = lock_path(application->path) };
    if (!lock.path)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    const int fd = open_lock(application, candidate, lock.path);
    if (fd >= 0 && read_lock(candidate, &lock, fd))
        lock_compare(candidate, &lock, slash ? slash + 1 : application->path,
                     &examined->locked);
    if (fd >= 0)
        close(fd);
    free(lock.text);
    free(lock.path);
    return !candidate->reason;
}
