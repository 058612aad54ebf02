/* SPDX-License-Identifier: MIT */
/* recall.h - the stage probe, from memory: the verdicts of earlier starts. */
#ifndef HW_OPEN_RECALL_H
#define HW_OPEN_RECALL_H

#include "open/child.h"
#include "open/verdict.h"

/* Gives the candidate the verdict that is kept, or stops it as that verdict says. False if
 * there is none: it must be tried. */
bool recall(struct hw_context *context, struct candidate *candidate);

/* Keeps what the probe in another process has just found. */
void remember(struct hw_context *context, struct candidate *candidate);

/* Adds to the verdict that is kept what a later test of one form has found. Of two who do so at
 * once, what one found may be missing: it is tested once more. */
void remember_more(struct hw_context *context, const struct candidate *candidate,
                   const struct only *only, const struct verdict *found);

#endif
