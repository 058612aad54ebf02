/* SPDX-License-Identifier: MIT */
/* ladder.h - the stages that a file passes before its devices can be used, one per source file:
 *
 *   list       scan.c       which files are there?
 *   filter     select.c     do the settings exclude the name? (The file is not opened.)
 *   trust      trust.c      who could have written the file?
 *   preflight  preflight.c  is it a plugin for this system? (It is read, not run: object/)
 *   bind       load.c       load it into the process
 *   probe      probe.c      does it start, and which devices does it have?
 *
 * A candidate that stops at a stage gets a reason (reasons.def), a message and a remedy. */
#ifndef HW_OPEN_LADDER_H
#define HW_OPEN_LADDER_H

#include "open/candidate.h"

/* Takes the candidate through the stages until it stops or can be used. */
void climb(struct hw_context *context, struct candidate *candidate);

#endif
