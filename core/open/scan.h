/* SPDX-License-Identifier: MIT */
/* scan.h - the stage list: the files there are, and the places that were searched. */
#ifndef HW_OPEN_SCAN_H
#define HW_OPEN_SCAN_H

#include "open/candidate.h"

/* A place that was searched, in the order of searching. */
struct directory {
    struct directory *next;
    char *path;
    char *source; /* "built-in", or the setting that named it */
    char *state;  /* "read", or why not */
    dev_t device;
    ino_t inode;
};

/* Lists the candidates of all search directories into the context. */
enum hw_status scan(struct hw_context *context);
void scan_free(struct hw_context *context);

/* Whether no earlier candidate has its name, or is the same file, or none that could be
 * tried. */
bool first_of_name(struct hw_context *context, struct candidate *candidate);

#endif
