/* SPDX-License-Identifier: MIT */
/* permissions.h - files and directories with all owners, groups, modes and access control lists,
 * and the expected decision for each, written from docs/loader.md independently of trust.c. Only
 * root can create them. */
#ifndef PERMISSIONS_H
#define PERMISSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USER        12345
#define OTHER       54321
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* An access control list with an entry for OTHER, or none. */
enum list { NO_LIST, OTHER_READS, OTHER_WRITES };

struct thing {
    uid_t owner;
    gid_t group;
    mode_t mode;
    enum list list;
};

/* The first two of them are the callers. */
extern const uid_t users[3];
extern const enum list lists[3];

/* Applies `thing` to the file; false if the file system has no access control lists. */
bool thing_make(const char *path, const struct thing *thing);
/* Describes it, in one of two static buffers. */
const char *thing_text(const struct thing *thing);

/* The expected reason of rejection if this user, whose only group has the same number, is the
 * caller; "" if it is used. Everyone may search the directory. */
const char *right_of_file(const struct thing *file, uid_t caller);
const char *right_of_directory(const struct thing *directory, uid_t caller);
/* The same for a link with this owner in the directory. */
const char *right_of_link(uid_t owner, const struct thing *directory, uid_t caller);

#endif
