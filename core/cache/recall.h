/* SPDX-License-Identifier: MIT */
/* recall.h - the stage probe, with verdicts of earlier starts from the cache. */
#ifndef HW_CACHE_RECALL_H
#define HW_CACHE_RECALL_H

#include "load/probe.h"
#include "load/verdict.h"

/* Gives the candidate its verdict from the cache, or stops it as the verdict says. False if there
 * is none: the candidate must be tried. */
bool recall(struct hw_context *context, struct candidate *candidate);

/* Whether a verdict with this reason is kept: it is about the plugin, not about this process. */
bool reason_is_kept(enum reason reason);

/* After a probe has ended: when the plugin was tried, and when it will be tried again. */
void recall_dates(struct hw_context *context, struct candidate *candidate);

#endif
