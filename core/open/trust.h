/* SPDX-License-Identifier: MIT */
/* trust.h - the stage trust: who could have written a file, or put another one in its
 * place. */
#ifndef HW_OPEN_TRUST_H
#define HW_OPEN_TRUST_H

#include "open/candidate.h"

/* Why a file was not opened. */
struct distrust {
    enum reason reason;
    char message[1024];
};

/* Opens the regular file that a path leads to, for reading. With `checked`, root and the
 * user must be the only ones who can write to it or replace it. Stores the path without
 * links, which the caller frees, unless `real` is NULL. Returns a descriptor, or -1 and
 * says why in `why`. */
int trust_open(const char *path, bool checked, char **real, struct distrust *why);

/* True if no other user can put a file into the directory, now or later. It may be missing,
 * if no other user can make it. Otherwise says why in `why`. */
bool trust_directory(const char *path, struct distrust *why);

/* Opens the candidate's file; stops the candidate if that fails. */
bool trust_check(struct hw_context *context, struct candidate *candidate);

#endif
