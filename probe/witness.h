/* SPDX-License-Identifier: MIT */
/* witness.h - detects changes that a plugin makes to the process. */
#ifndef HW_PROBE_WITNESS_H
#define HW_PROBE_WITNESS_H

#include "open/candidate.h"

/* Records the state before a plugin runs. Returns NULL if that is not possible, or if the process
 * has other threads. */
struct witness *witness_begin(void);
/* Returns REASON_CHANGED_... if the plugin has changed the recorded state. With `handlers`, also
 * checks signal handlers. Use that only for loading the plugin, because some vendors' libraries
 * install handlers later. */
enum reason witness_end(struct witness *witness, bool handlers);

#endif
