/* SPDX-License-Identifier: MIT */
/* witness.h - how the process was before a plugin ran, and what the plugin changed. */
#ifndef HW_OPEN_WITNESS_H
#define HW_OPEN_WITNESS_H

#include <stdbool.h>

/* How the process is before a plugin runs. NULL: there is no witness, as where other
 * threads run. */
struct witness *witness_begin(void);
/* What the plugin has changed since, or NULL; what can be put back is. With `handlers`,
 * signal handlers count: not once a vendor's libraries are in, some of which install
 * theirs. */
const char *witness_end(struct witness *witness, bool handlers);

#endif
