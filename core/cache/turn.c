/* SPDX-License-Identifier: MIT */
/* turn.c - who is trying or binding a plugin: see turn.h. POSIX, like cache.c.
 *
 * Trying: a process locks the file "<entry>.turn". Binding: each thread has a locked file in the
 * directory "<entry>.held", which hides the entry as long as it exists. Each thread removes its
 * file and calls rmdir(), which only removes an empty directory: so the last thread ends the
 * hiding. A thread that crashes leaves its file without a lock. The file keeps the entry hidden
 * until the plugin has been tried again. */
#define _DEFAULT_SOURCE /* flock() */
#include "cache/turn.h"

#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often to try to make a file in a directory that others remove when it is empty. */
#define ATTEMPTS 1000

void cache_name_with(const char *entry, const char *ending, char name[CACHE_NAME_CHARS])
{
    snprintf(name, CACHE_NAME_CHARS, "%.*s%s", CACHE_NAME_CHARS - 8, entry, ending);
}

static void name_of(const struct candidate *candidate, const char *ending,
                    char name[CACHE_NAME_CHARS])
{
    char entry[CACHE_NAME_CHARS];
    cache_name(candidate, entry);
    cache_name_with(entry, ending, name);
}

/* Unlocks explicitly, because a forked child may have inherited the descriptor. */
static void unlock(int *fd)
{
    if (*fd >= 0) {
        flock(*fd, LOCK_UN);
        close(*fd);
    }
    *fd = -1;
}

/* Whether the file has no name any more. */
static bool is_removed(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_nlink == 0;
}

/* ---- turns: trying a plugin ---- */

/* The lock ends with the process, however that ends. If a forked child of it lives on, the lock
 * stays; other processes then wait in vain and try the plugin themselves. If the locked file has
 * been removed, another process has just ended its turn, and there is a verdict. */
bool turn_begin(const struct hw_context *context, struct candidate *candidate)
{
    char name[CACHE_NAME_CHARS];
    const int place = cache_place(context, candidate, true);
    if (place < 0)
        return true;
    name_of(candidate, ".turn", name);
    const int turn = openat(place, name,
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    close(place);
    if (turn < 0)
        return true;
    const bool locked = flock(turn, LOCK_EX | LOCK_NB) == 0;
    const bool others = locked ? is_removed(turn) : errno == EWOULDBLOCK;
    if (locked && !others)
        candidate->turn = turn;
    else
        close(turn);
    return !others;
}

void turn_end(const struct hw_context *context, struct candidate *candidate)
{
    char name[CACHE_NAME_CHARS];
    const int place = candidate->turn < 0 ? -1 : cache_place(context, candidate, true);
    if (place >= 0) {
        name_of(candidate, ".turn", name);
        unlinkat(place, name, 0);
        close(place);
    }
    unlock(&candidate->turn);
}

/* ---- holds: binding a plugin ---- */

/* Opens the directory of the threads that hold the entry. With `make`, creates it. Returns -1 if it
 * does not exist. */
int hold_open(int place, const char *held, bool make)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (make)
        mkdirat(place, held, 0700);
    return openat(place, held, flags);
}

/* Makes and locks the file of this thread. Returns -1 with ENOENT if somebody has just removed it
 * or its directory. */
static int mark(int place, const char *held, const char *own)
{
    const int directory = hold_open(place, held, true);
    int fd = directory < 0
                 ? -1
                 : openat(directory, own, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    const int error = errno;
    if (directory >= 0)
        close(directory);
    errno = error;
    if (fd >= 0 && (flock(fd, LOCK_EX) || is_removed(fd))) {
        unlock(&fd);
        errno = ENOENT;
    }
    return fd;
}

/* Makes a name that no other living thread has. */
static void name_mark(const struct candidate *candidate, char name[CACHE_NAME_CHARS])
{
    snprintf(name, CACHE_NAME_CHARS, "%ld-%p", (long)getpid(), (const void *)candidate);
}

void hold_begin(const struct hw_context *context, struct candidate *candidate)
{
    char held[CACHE_NAME_CHARS], own[CACHE_NAME_CHARS];
    const int place = cache_place(context, candidate, false);
    if (place < 0)
        return;
    name_of(candidate, ".held", held);
    name_mark(candidate, own);
    errno = ENOENT;
    for (int i = 0; i < ATTEMPTS && candidate->hold < 0 && errno == ENOENT; i++)
        candidate->hold = mark(place, held, own);
    close(place);
}

static void unmark(const struct candidate *candidate, int place)
{
    char held[CACHE_NAME_CHARS], own[CACHE_NAME_CHARS];
    name_of(candidate, ".held", held);
    name_mark(candidate, own);
    const int directory = hold_open(place, held, false);
    if (directory >= 0) {
        unlinkat(directory, own, 0);
        close(directory);
    }
    unlinkat(place, held, AT_REMOVEDIR);
}

void hold_end(const struct hw_context *context, struct candidate *candidate, bool keep)
{
    char name[CACHE_NAME_CHARS];
    const int place = cache_place(context, candidate, false);
    if (place >= 0) {
        cache_name(candidate, name);
        if (!keep)
            unlinkat(place, name, 0);
        if (candidate->hold >= 0)
            unmark(candidate, place);
        close(place);
    }
    unlock(&candidate->hold);
}

bool hold_exists(int place, const struct candidate *candidate)
{
    char held[CACHE_NAME_CHARS];
    struct stat file;
    name_of(candidate, ".held", held);
    return fstatat(place, held, &file, AT_SYMLINK_NOFOLLOW) == 0;
}
