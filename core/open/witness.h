/* SPDX-License-Identifier: MIT */
/* witness.h - detects what a plugin changes in the process. */
#ifndef HW_OPEN_WITNESS_H
#define HW_OPEN_WITNESS_H

#include "open/candidate.h"

/* Records the state before a plugin runs. Returns NULL if it cannot, or if other threads
 * run. */
struct witness *witness_begin(void);
/* Returns REASON_CHANGED_... if the plugin changed something since, and restores what it can. With
 * `handlers`, this includes signal handlers; some vendors' libraries install theirs, so
 * only loading the plugin is checked for them. */
enum reason witness_end(struct witness *witness, bool handlers);

#endif
