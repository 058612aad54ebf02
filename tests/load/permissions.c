/* SPDX-License-Identifier: MIT */
/* permissions.c - see permissions.h. */
#define _GNU_SOURCE
#include "permissions.h"

#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

const uid_t users[] = { 0, USER, OTHER };
const enum list lists[] = { NO_LIST, OTHER_READS, OTHER_WRITES };

/* ---- the properties of a file or a directory ---- */

/* The kernel's format of a list: tag, rights, user or group. The mask grants all rights in the
 * list. */
static int set_list(const char *path, const struct thing *thing)
{
    const uint16_t rights = thing->list == OTHER_WRITES ? 6 : 4;
    const uint16_t owner = thing->mode >> 6 & 7, group = thing->mode >> 3 & 7;
    const struct {
        uint32_t version;
        struct {
            uint16_t tag, rights;
            uint32_t id;
        } rows[5];
    } list = { 2,
               { { 0x01, owner, UINT32_MAX },
                 { 0x02, rights, OTHER },
                 { 0x04, group, UINT32_MAX },
                 { 0x10, group | rights, UINT32_MAX },
                 { 0x20, thing->mode & 7, UINT32_MAX } } };
    return setxattr(path, "system.posix_acl_access", &list, sizeof list, 0);
}

bool thing_make(const char *path, const struct thing *thing)
{
    assert_int_equal(chown(path, thing->owner, thing->group), 0);
    assert_int_equal(chmod(path, thing->mode), 0);
    if (thing->list == NO_LIST) {
        removexattr(path, "system.posix_acl_access");
        assert_int_equal(chmod(path, thing->mode), 0);
        return true;
    }
    if (set_list(path, thing) == 0)
        return true;
    assert_true(errno == ENOTSUP || errno == EPERM);
    return false;
}

const char *thing_text(const struct thing *thing)
{
    static char text[2][128];
    static unsigned turn;
    char *to = text[turn++ % 2];
    snprintf(to, sizeof text[0], "of user %u, group %u, mode %04o, list %d",
             (unsigned)thing->owner, (unsigned)thing->group, (unsigned)thing->mode,
             (int)thing->list);
    return to;
}

/* ---- the expected decision ---- */

static bool is_ours(uid_t owner, uid_t caller)
{
    return owner == 0 || owner == caller;
}

/* A group is safe if its number is root's or the owner's. A list counts as writable for others if
 * its mask allows writing; the individual entries are not examined. */
static bool others_write(const struct thing *thing)
{
    const bool group = (thing->mode & 020) || thing->list == OTHER_WRITES;
    return (thing->mode & 02) ||
           (group && (thing->list != NO_LIST ||
                      (thing->group != 0 && thing->group != thing->owner)));
}

/* The caller's only group is its own. */
static bool may_read(const struct thing *thing, uid_t caller)
{
    const unsigned shift = caller == thing->owner ? 6 : caller == thing->group ? 3 : 0;
    return caller == 0 || (thing->mode >> shift & 4);
}

const char *right_of_file(const struct thing *file, uid_t caller)
{
    return !is_ours(file->owner, caller) ? "untrusted-owner"
           : others_write(file)          ? "untrusted-mode"
           : !may_read(file, caller)     ? "unreadable"
                                         : "";
}

/* Everybody may search the directories of these tests. */
const char *right_of_directory(const struct thing *directory, uid_t caller)
{
    const bool sticky = directory->mode & 01000;
    return !is_ours(directory->owner, caller) || (others_write(directory) && !sticky)
               ? "untrusted-path"
               : "";
}

const char *right_of_link(uid_t owner, const struct thing *directory, uid_t caller)
{
    return others_write(directory) && !is_ours(owner, caller)
               ? "untrusted-path"
               : right_of_directory(directory, caller);
}
