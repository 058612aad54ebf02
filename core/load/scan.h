/* SPDX-License-Identifier: MIT */
/* scan.h - the stage list: finds plugin files, and records where it searched. */
#ifndef HW_LOAD_SCAN_H
#define HW_LOAD_SCAN_H

#include "open/candidate.h"

/* A directory or file of the search path, in the order of the search. */
struct directory {
    struct directory *next;
    char *path;
    char *source; /* "built-in", or the setting that named it */
    char *state;  /* "read", or why it was not read */
    struct stat look;
};

/* Adds the candidates of all search directories. */
enum hw_status scan(struct catalog *found);
/* Adds the candidate of one file. */
enum hw_status scan_file(struct catalog *found, const char *path, const char *source);
void scan_free(struct catalog *found);

/* The plugin of that name that was found last; or NULL. `found` may be NULL. */
struct plugin *plugin_named(const struct catalog *found, const char *name);

/* Stops the candidate if an earlier candidate that was tried has the same name or is the same file,
 * or if a plugin of that name is in use. */
bool first_of_name(struct hw_context *context, struct candidate *candidate);

#endif
