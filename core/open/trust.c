/* SPDX-License-Identifier: MIT */
/* trust.c - the stage trust: who could have written the file, or put another in its place.
 *
 * The path is walked as the system would walk it, link by link. When every directory on the
 * way belongs to root or to the user, and nobody else may rename what lies in it, then
 * nobody else can change what the path leads to, now or later: what is checked here is what
 * is loaded. */
#define _DEFAULT_SOURCE
#include "open/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40 /* as many as the system follows */

struct walk {
    struct candidate *candidate;
    bool checked;            /* owners and modes count */
    bool sticky;             /* the directory reached is one where all may make files */
    unsigned links;          /* followed so far */
    char real[PATH_MAX];     /* reached so far, without links; "" is the root */
    char rest[2 * PATH_MAX]; /* still to go */
};

static bool ours(const struct stat *info)
{
    return info->st_uid == 0 || info->st_uid == geteuid();
}

/* Group write is harmless where the group is root's, or the owner's alone: by the custom of
 * user-private groups, the one with the user's own number. */
static bool others_write(const struct stat *info)
{
    bool group = info->st_gid != 0 && info->st_gid != info->st_uid;
    return (info->st_mode & S_IWOTH) || ((info->st_mode & S_IWGRP) && group);
}

static bool check_directory(struct walk *walk, const struct stat *info)
{
    const char *path = walk->real[0] ? walk->real : "/";
    walk->sticky = (info->st_mode & S_ISVTX) && others_write(info);
    if (!walk->checked)
        return true;
    if (!ours(info))
        return stop(walk->candidate, REASON_UNTRUSTED_PATH,
                    "the directory %s belongs to user %u, who may replace the file", path,
                    (unsigned)info->st_uid);
    if (others_write(info) && !walk->sticky)
        return stop(walk->candidate, REASON_UNTRUSTED_PATH,
                    "others may write to the directory %s (mode %04o)", path,
                    (unsigned)(info->st_mode & 07777));
    return true;
}

static bool path_error(struct walk *walk, int error)
{
    enum reason reason = error == ENOENT || error == ENOTDIR ? REASON_MISSING
                         : error == ELOOP                    ? REASON_LINK_LOOP
                                                             : REASON_UNREADABLE;
    return stop(walk->candidate, reason, "%s: %s", walk->real, strerror(error));
}

/* Puts the link's text in front of what is still to go. */
static bool follow(struct walk *walk, const struct stat *info, size_t parent)
{
    if (++walk->links > MAX_LINKS)
        return path_error(walk, ELOOP);
    if (walk->checked && walk->sticky && !ours(info))
        return stop(walk->candidate, REASON_UNTRUSTED_PATH,
                    "the link %s belongs to user %u, who may change it", walk->real,
                    (unsigned)info->st_uid);
    char target[PATH_MAX], joined[sizeof walk->rest];
    ssize_t length = readlink(walk->real, target, sizeof target - 1);
    if (length < 0)
        return path_error(walk, errno);
    target[length] = '\0';
    int joined_length = snprintf(joined, sizeof joined, "%s/%s", target, walk->rest);
    if (joined_length < 0 || (size_t)joined_length >= sizeof joined)
        return path_error(walk, ENAMETOOLONG);
    memcpy(walk->rest, joined, (size_t)joined_length + 1);
    walk->real[target[0] == '/' ? 0 : parent] = '\0';
    return true;
}

/* Cuts the next name off the rest; false if there is none. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 2])
{
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(start, "/");
    size_t kept = length <= NAME_MAX ? length
                                     : NAME_MAX + 1; /* too long: lstat will say so */
    memcpy(name, start, kept);
    name[kept] = '\0';
    memmove(walk->rest, start + length, strlen(start + length) + 1);
    return kept != 0;
}

static bool last(const struct walk *walk)
{
    return walk->rest[strspn(walk->rest, "/")] == '\0';
}

static bool leave(struct walk *walk)
{
    char *slash = strrchr(walk->real, '/');
    if (slash)
        *slash = '\0';
    struct stat info;
    if (lstat(walk->real[0] ? walk->real : "/", &info))
        return path_error(walk, errno);
    return check_directory(walk, &info);
}

/* One name further. `info` is about what was reached. */
static bool step(struct walk *walk, const char *name, struct stat *info)
{
    if (strcmp(name, ".") == 0)
        return true;
    if (strcmp(name, "..") == 0)
        return leave(walk);
    size_t parent = strlen(walk->real);
    int length = snprintf(walk->real + parent, sizeof walk->real - parent, "/%s", name);
    if (length < 0 || (size_t)length >= sizeof walk->real - parent)
        return path_error(walk, ENAMETOOLONG);
    if (lstat(walk->real, info))
        return path_error(walk, errno);
    if (S_ISLNK(info->st_mode))
        return follow(walk, info, parent);
    if (S_ISDIR(info->st_mode))
        return check_directory(walk, info);
    return last(walk) || path_error(walk, ENOTDIR);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static bool check_file(struct walk *walk, const struct stat *info)
{
    if (!S_ISREG(info->st_mode))
        return stop(walk->candidate, REASON_NOT_A_FILE, "%s, not a regular file",
                    kind_of(info->st_mode));
    if (walk->checked && !ours(info))
        return stop(walk->candidate, REASON_UNTRUSTED_OWNER, "it belongs to user %u",
                    (unsigned)info->st_uid);
    if (walk->checked && others_write(info))
        return stop(walk->candidate, REASON_UNTRUSTED_MODE,
                    "others may write to it (mode %04o)",
                    (unsigned)(info->st_mode & 07777));
    return true;
}

/* From the root to the file; the candidate has its real path and a descriptor then. */
static bool walk_path(struct walk *walk)
{
    char name[NAME_MAX + 2];
    struct stat info, opened;
    if (lstat("/", &info))
        return path_error(walk, errno);
    if (!check_directory(walk, &info))
        return false;
    while (next_name(walk, name))
        if (!step(walk, name, &info))
            return false;
    if (!check_file(walk, &info))
        return false;

    struct candidate *candidate = walk->candidate;
    candidate->fd = open(walk->real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (candidate->fd < 0 || fstat(candidate->fd, &opened))
        return path_error(walk, errno);
    if (opened.st_dev != info.st_dev || opened.st_ino != info.st_ino)
        return stop(candidate, REASON_CHANGED_FILE, NULL);
    candidate->real = strdup(walk->real);
    return candidate->real || stop(candidate, REASON_NO_MEMORY, NULL);
}

bool trust_check(struct hw_context *context, struct candidate *candidate)
{
    struct walk *walk = malloc(sizeof *walk);
    if (!walk)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    *walk = (struct walk){ .candidate = candidate, .checked = context->settings.trust };
    bool passed = strlen(candidate->path) < PATH_MAX;
    if (passed) {
        strcpy(walk->rest, candidate->path);
        passed = walk_path(walk);
    } else {
        stop(candidate, REASON_UNREADABLE, "its path has over %d bytes", PATH_MAX - 1);
    }
    free(walk);
    return passed;
}
