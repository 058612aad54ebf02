/* SPDX-License-Identifier: MIT */
/* recall.h - the stage probe, from memory: the verdicts of earlier starts. */
#ifndef HW_OPEN_RECALL_H
#define HW_OPEN_RECALL_H

#include "open/candidate.h"

/* Gives the candidate the verdict that is kept, or stops it as that verdict says. False if
 * there is none: it must be tried. */
bool recall(struct hw_context *context, struct candidate *candidate);

/* Keeps what the probe in another process has just found. */
void remember(struct hw_context *context, struct candidate *candidate);

#endif
