/* SPDX-License-Identifier: MIT */
/* store.h - writes entries of the cache that the library reads (cache/cache.h). The candidate needs
 * only a name, a key and the path without links. */
#ifndef HW_PROBE_STORE_H
#define HW_PROBE_STORE_H

#include "cache/cache.h"

/* Stores a verdict: bytes, size, kind, outcome and `written`, which is now. Fills in the rest
 * even if storing fails. Returns whether it was stored. Does not store it if the plugin's file
 * has changed since the key was made. */
bool cache_store(struct hw_context *context, const struct candidate *candidate,
                 struct cached *verdict);

/* Like cache_store(), but keeps the entry's dates, timeout count and hidden state. */
bool cache_replace(struct hw_context *context, const struct candidate *candidate,
                   const struct cached *verdict);

#endif
