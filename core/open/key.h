/* SPDX-License-Identifier: MIT */
/* key.h - the key of a verdict: everything that it depends on, as lines of text. If two keys are
 * equal, a probe has the same result. docs/cache.md lists the lines. */
#ifndef HW_OPEN_KEY_H
#define HW_OPEN_KEY_H

#include "open/candidate.h"

/* Begins the candidate's key; its file must be open. Without this, the next two do nothing. */
void key_begin(struct candidate *candidate);
/* Adds a library that the plugin needs, and the path where it was found. The path is NULL if only
 * the system's loader knows it. */
void key_add_library(struct candidate *candidate, const char *name, const char *path);
/* Adds the rest; the manifest must have been read. */
void key_end(struct hw_context *context, struct candidate *candidate);
/* Whether two keys agree about the plugin and its driver. They may differ about the process. */
bool key_same_plugin(const char *a, const char *b);
/* Whether the candidate's path still leads to the file for which the key was made. */
bool key_holds(const struct candidate *candidate);

#endif
