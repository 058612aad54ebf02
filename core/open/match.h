/* SPDX-License-Identifier: MIT */
/* match.h - the stage match: is there hardware that makes the plugin worthwhile? */
#ifndef HW_OPEN_MATCH_H
#define HW_OPEN_MATCH_H

#include "open/candidate.h"

/* The hardware that the system lists. The first call reads it. NULL if memory runs out. */
const struct inventory *inventory_of(struct catalog *found);

/* Stops a candidate if no rule `match` of its manifest holds, unless the settings name it. */
bool match(struct hw_context *context, struct candidate *candidate);

#endif
