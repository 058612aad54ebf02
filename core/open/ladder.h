/* SPDX-License-Identifier: MIT */
/* ladder.h - the ladder that a file climbs until its devices can be used, one stage per file:
 *
 *   list       scan.c       the files there are
 *   filter     select.c     what the settings exclude, by name, before any file is opened
 *   trust      trust.c      who could have written the file
 *   preflight  preflight.c  what reading it shows: see object/
 *   bind       load.c       into the process
 *   probe      probe.c      what running it shows
 *
 * Where it stops, a candidate gets a reason (reasons.def), a sentence and a remedy: see stop()
 * in candidate.h. */
#ifndef HW_OPEN_LADDER_H
#define HW_OPEN_LADDER_H

#include "open/candidate.h"

/* Takes the candidate as far as it gets. */
void climb(struct hw_context *context, struct candidate *candidate);

#endif
