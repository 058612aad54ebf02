/* SPDX-License-Identifier: MIT */
/* key.h - all that the verdict on a plugin depends on, as lines of text. Two keys are the
 * same if a probe would find the same. docs/cache.md lists the lines. */
#ifndef HW_OPEN_KEY_H
#define HW_OPEN_KEY_H

#include "open/candidate.h"

/* Begins the candidate's key, when its file is open. Without this, the next two do nothing. */
void key_begin(struct candidate *candidate);
/* Adds a library that it needs, and where it was found: NULL if only the system's loader
 * knows. */
void key_add_library(struct candidate *candidate, const char *name, const char *path);
/* Adds the rest, when the manifest has been read. */
void key_end(struct hw_context *context, struct candidate *candidate);
/* Whether two keys say the same of the plugin and its driver, whatever they say of this process. */
bool key_same_plugin(const char *a, const char *b);
/* Whether the candidate's path still leads to the file that the key is about. */
bool key_holds(const struct candidate *candidate);

#endif
