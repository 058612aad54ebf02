/* SPDX-License-Identifier: MIT */
/* key.h - the key of a verdict: what the library knows that it depends on, as lines of text.
 * docs/cache.md lists the lines. The verdict itself lists the rest (cache/depends.h). */
#ifndef HW_CACHE_KEY_H
#define HW_CACHE_KEY_H

#include "open/candidate.h"

/* Begins the candidate's key; its file must be open. Without this, key_end() does nothing. */
void key_begin(struct candidate *candidate);
/* Adds the rest; the manifest must have been read. Returns true, as the last of the checks. */
bool key_end(struct hw_context *context, struct candidate *candidate);
/* Whether two keys agree about the plugin and its driver. They may differ about the process. */
bool key_same_plugin(const char *a, const char *b);

#endif
