/* SPDX-License-Identifier: MIT */
/* trust.h - the stage trust: can another user have written a file, or put another file in its
 * place? */
#ifndef HW_LOAD_TRUST_H
#define HW_LOAD_TRUST_H

#include "open/candidate.h"

/* Why a file was not opened. */
struct distrust {
    enum reason reason;
    char message[1024];
};

/* Opens the regular file that a path leads to, for reading. With `checked`, only root and the user
 * may be able to write to it or replace it. Stores the path without links in `real`, unless that is
 * NULL; the caller frees it. Returns a descriptor, or -1 with the reason in `why`. */
int trust_open(const char *path, bool checked, char **real, struct distrust *why);

/* True if no other user can put a file into the directory, now or later. A missing directory counts
 * if no other user can create it. Otherwise returns false, with the reason in `why`. */
bool trust_directory(const char *path, struct distrust *why);

/* The file in a plugin directory with the digests of its plugins, which hw-probe reads. Returns its
 * path, for the path of a plugin; the caller frees it. */
#define LOCK_NAME "plugins.lock"
char *lock_path(const char *plugin);
/* Whether the candidate's directory has one, or may have one. */
bool trust_has_lock(const struct candidate *candidate);

/* Opens the candidate's file; stops the candidate if that fails. */
bool trust_check(struct hw_context *context, struct candidate *candidate);

#endif
