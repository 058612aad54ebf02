/* SPDX-License-Identifier: MIT */
/* trust.c - the stage trust: can another user have written the file, or put another file in its
 * place?
 *
 * The path is followed as the system would follow it, one component and one link at a time.
 * If every directory on the way belongs to root or to the user, and no other user can write
 * to it, then no other user can change where the path leads, now or later: the file that is
 * checked here is the file that will be loaded. */
#define _DEFAULT_SOURCE
#include "load/trust.h"

#include "base/platform.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40 /* the limit of the system */

struct walk {
    struct distrust *why;
    bool checked;              /* owners and permissions matter */
    bool sticky;               /* other users can create files in the directory reached */
    unsigned links;            /* followed so far */
    char real[PATH_MAX];       /* reached so far, without links; "" is the root */
    char rest[2 * PATH_MAX];   /* the rest of the path, still to be followed */
    char joined[2 * PATH_MAX]; /* the target of a link, and the rest */
};

static bool is_ours(const struct stat *info)
{
    return info->st_uid == 0 || info->st_uid == geteuid();
}

/* Records why the walk stops; returns false. */
__attribute__((format(printf, 3, 4))) static bool
walk_refuse(struct walk *walk, enum reason reason, const char *format, ...)
{
    va_list arguments;
    walk->why->reason = reason;
    va_start(arguments, format);
    vsnprintf(walk->why->message, sizeof walk->why->message, format, arguments);
    va_end(arguments);
    return false;
}

/* Describes the other users who can write to the file, or returns NULL. Group write permission is
 * harmless if the group is root's or the owner's private group, which by custom has the owner's
 * number. With an access control list, the group's bits are the maximum that any entry grants. */
static const char *other_writers(const char *path, const struct stat *info)
{
    if (info->st_mode & S_IWOTH)
        return "all users";
    if (!(info->st_mode & S_IWGRP))
        return NULL;
    if (info->st_gid != 0 && info->st_gid != info->st_uid)
        return "the members of its group";
    return has_access_list(path) ? "users in its access control list" : NULL;
}

static bool check_directory(struct walk *walk, const struct stat *info)
{
    const char *path = walk->real[0] ? walk->real : "/";
    const char *writers = other_writers(path, info);
    walk->sticky = (info->st_mode & S_ISVTX) && writers;
    if (!walk->checked)
        return true;
    if (!is_ours(info))
        return walk_refuse(walk, REASON_UNTRUSTED_PATH,
                           "the directory %s belongs to user %u, who can replace the file",
                           path, (unsigned)info->st_uid);
    if (writers && !walk->sticky)
        return walk_refuse(walk, REASON_UNTRUSTED_PATH,
                           "%s can write to the directory %s (mode %04o)", writers, path,
                           (unsigned)(info->st_mode & 07777));
    return true;
}

static bool path_error(struct walk *walk, int error)
{
    enum reason reason = error == ENOENT || error == ENOTDIR || error == ELOOP
                             ? REASON_MISSING
                         : is_shortage(error) ? REASON_NO_MEMORY
                                              : REASON_UNREADABLE;
    return walk_refuse(walk, reason, "%s: %s", walk->real[0] ? walk->real : "/",
                       strerror(error));
}

/* Puts the target of the link in front of the rest of the path. */
static bool walk_follow(struct walk *walk, const struct stat *info, size_t parent)
{
    if (++walk->links > MAX_LINKS)
        return path_error(walk, ELOOP);
    if (walk->checked && walk->sticky && !is_ours(info))
        return walk_refuse(walk, REASON_UNTRUSTED_PATH,
                           "the link %s belongs to user %u, who can change it", walk->real,
                           (unsigned)info->st_uid);
    char *joined = walk->joined;
    const ssize_t length = readlink(walk->real, joined, PATH_MAX - 1);
    if (length < 0)
        return path_error(walk, errno);
    if ((size_t)length + strlen(walk->rest) + 2 > sizeof walk->joined)
        return path_error(walk, ENAMETOOLONG);
    joined[length] = '/';
    strcpy(joined + length + 1, walk->rest);
    strcpy(walk->rest, joined);
    walk->real[joined[0] == '/' ? 0 : parent] = '\0';
    return true;
}

/* Removes the next name from the rest of the path; false if there is none. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 2])
{
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(start, "/");
    size_t kept = length <= NAME_MAX ? length
                                     : NAME_MAX + 1; /* too long, so lstat() will fail */
    memcpy(name, start, kept);
    name[kept] = '\0';
    memmove(walk->rest, start + length, strlen(start + length) + 1);
    return kept != 0;
}

static bool is_last_name(const struct walk *walk)
{
    return walk->rest[strspn(walk->rest, "/")] == '\0';
}

static bool walk_up(struct walk *walk)
{
    char *slash = strrchr(walk->real, '/');
    if (slash)
        *slash = '\0';
    struct stat info;
    if (lstat(walk->real[0] ? walk->real : "/", &info))
        return path_error(walk, errno);
    return check_directory(walk, &info);
}

/* Follows one name. `info` describes the file that it leads to. */
static bool walk_step(struct walk *walk, const char *name, struct stat *info)
{
    if (strcmp(name, ".") == 0)
        return true;
    if (strcmp(name, "..") == 0)
        return walk_up(walk);
    size_t parent = strlen(walk->real);
    int length = snprintf(walk->real + parent, sizeof walk->real - parent, "/%s", name);
    if (length < 0 || (size_t)length >= sizeof walk->real - parent)
        return path_error(walk, ENAMETOOLONG);
    if (lstat(walk->real, info))
        return path_error(walk, errno);
    if (S_ISLNK(info->st_mode))
        return walk_follow(walk, info, parent);
    if (S_ISDIR(info->st_mode))
        return check_directory(walk, info);
    return is_last_name(walk) || path_error(walk, ENOTDIR);
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
        return walk_refuse(walk, REASON_NOT_A_FILE, "%s, not a regular file",
                           kind_of(info->st_mode));
    if (walk->checked && !is_ours(info))
        return walk_refuse(walk, REASON_UNTRUSTED_OWNER, "it belongs to user %u",
                           (unsigned)info->st_uid);
    const char *writers = walk->checked ? other_writers(walk->real, info) : NULL;
    if (writers)
        return walk_refuse(walk, REASON_UNTRUSTED_MODE, "%s can write to it (mode %04o)",
                           writers, (unsigned)(info->st_mode & 07777));
    return true;
}

/* Follows the path from the root. `info` describes the file that it leads to. */
static bool walk_path(struct walk *walk, struct stat *info)
{
    char name[NAME_MAX + 2];
    if (lstat("/", info))
        return path_error(walk, errno);
    if (!check_directory(walk, info))
        return false;
    while (next_name(walk, name))
        if (!walk_step(walk, name, info))
            return false;
    return true;
}

static int open_walked(struct walk *walk, const struct stat *info)
{
    struct stat opened;
    int fd = open(walk->real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &opened))
        path_error(walk, errno);
    else if (same_inode(&opened, info))
        return fd;
    else
        walk_refuse(walk, REASON_CHANGED_FILE, "%s",
                    reason_rows[REASON_CHANGED_FILE].sentence);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A relative path starts in the current directory. */
static bool walk_start(struct walk *walk, const char *path)
{
    size_t length = 0;
    if (*path != '/') {
        if (!getcwd(walk->rest, PATH_MAX - 1))
            return path_error(walk, errno);
        length = strlen(walk->rest);
        walk->rest[length++] = '/';
    }
    if (strlen(path) >= PATH_MAX)
        return walk_refuse(walk, REASON_UNREADABLE, "its path is longer than %d bytes",
                           PATH_MAX - 1);
    strcpy(walk->rest + length, path);
    return true;
}

int trust_open(const char *path, bool checked, char **real, struct distrust *why)
{
    struct walk *walk = malloc(sizeof *walk);
    struct stat info;
    int fd = -1;
    *why = (struct distrust){ REASON_NO_MEMORY, "out of memory" };
    if (!walk)
        return -1;
    *walk = (struct walk){ .why = why, .checked = checked };
    if (walk_start(walk, path) && walk_path(walk, &info) && check_file(walk, &info))
        fd = open_walked(walk, &info);
    if (fd >= 0 && real && !(*real = strdup(walk->real))) {
        close(fd);
        fd = -1;
    }
    free(walk);
    return fd;
}

bool trust_directory(const char *path, struct distrust *why)
{
    struct walk *walk = malloc(sizeof *walk);
    struct stat info;
    *why = (struct distrust){ REASON_NO_MEMORY, "out of memory" };
    if (!walk)
        return false;
    *walk = (struct walk){ .why = why, .checked = true };
    bool reached = walk_start(walk, path) && walk_path(walk, &info);
    bool good = reached || why->reason == REASON_MISSING;
    if (good && walk->sticky)
        good = walk_refuse(walk, REASON_UNTRUSTED_PATH,
                           "other users can create %s, or files in it", walk->real);
    free(walk);
    return good;
}

char *lock_path(const char *plugin)
{
    const char *slash = strrchr(plugin, '/');
    return text_format("%.*s" LOCK_NAME, slash ? (int)(slash + 1 - plugin) : 0, plugin);
}

static bool may_exist(const char *path)
{
    struct stat info;
    return !lstat(path, &info) || (errno != ENOENT && errno != ENOTDIR);
}

bool trust_has_lock(const struct candidate *candidate)
{
    char *path = lock_path(candidate->path);
    const bool has = !path || may_exist(path);
    free(path);
    return has;
}

/* hw-probe compares the file with the lock. Where hw-probe is not used, a lock is not ignored. */
static bool check_no_lock(struct candidate *candidate)
{
    char *path = lock_path(candidate->path);
    if (!path) {
        stop(candidate, REASON_NO_MEMORY, NULL);
    } else if (may_exist(path)) {
        stop(candidate, REASON_NOT_LOCKED, "only hw-probe can compare it with %s", path);
        set_remedy(candidate, "Set HW_PROBE=child");
    }
    free(path);
    return !candidate->reason;
}

bool trust_check(struct hw_context *context, struct candidate *candidate)
{
    struct distrust why;
    const bool probed = context->settings.probe != PROBE_INPROC || context->loaded_fn;
    candidate->fd = trust_open(candidate->path, context->settings.trust, &candidate->real,
                               &why);
    if (candidate->fd < 0)
        return stop(candidate, why.reason, "%s", why.message);
    return probed || check_no_lock(candidate);
}
