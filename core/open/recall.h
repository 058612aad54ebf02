/* SPDX-License-Identifier: MIT */
/* recall.h - the stage probe, with verdicts of earlier starts from the cache. */
#ifndef HW_OPEN_RECALL_H
#define HW_OPEN_RECALL_H

#include "open/child.h"
#include "open/verdict.h"

/* Gives the candidate its verdict from the cache, or stops it as the verdict says. False if there
 * is none: the candidate must be tried. */
bool recall(struct hw_context *context, struct candidate *candidate);

/* Stores the verdict of a probe that has just ended. */
void remember(struct hw_context *context, struct candidate *candidate);

/* Adds the result of a later test of one form to the verdict in the cache. If two processes do so
 * at once, one result may get lost; that form is then tested again. */
void remember_more(struct hw_context *context, const struct candidate *candidate,
                   const struct only *only, const struct verdict *found);

#endif
