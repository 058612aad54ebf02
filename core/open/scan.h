/* SPDX-License-Identifier: MIT */
/* scan.h - the stage list: finds plugin files, and records where it searched. */
#ifndef HW_OPEN_SCAN_H
#define HW_OPEN_SCAN_H

#include "open/candidate.h"

/* A directory or file of the search path, in the order of the search. */
struct directory {
    struct directory *next;
    char *path;
    char *source; /* "built-in", or the setting that named it */
    char *state;  /* "read", or why it was not read */
    dev_t device;
    ino_t inode;
};

/* Adds the candidates of all search directories to the context. */
enum hw_status scan(struct hw_context *context);
/* Adds the candidate of one file. */
enum hw_status scan_file(struct hw_context *context, const char *path, const char *source);
void scan_free(struct hw_context *context);

/* Stops the candidate if an earlier one that was loaded has the same name or is the same
 * file. */
bool first_of_name(struct hw_context *context, struct candidate *candidate);

#endif
