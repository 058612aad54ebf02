/* SPDX-License-Identifier: MIT */
/* recall.c - the stage probe, with verdicts of earlier starts from the cache. */
#define _POSIX_C_SOURCE 200809L
#include "cache/recall.h"

#include "base/text.h"
#include "cache/cache.h"
#include "cache/depends.h"
#include "open/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The stage trust looks at directories that a verdict does not list. */
bool reason_is_kept(enum reason reason)
{
    const enum stage stage = reason_rows[reason].stage;
    return (stage == STAGE_PROBE || stage == STAGE_PREFLIGHT) && reason != REASON_NO_HELPER;
}

/* A plugin that was tried and stopped is tried again later: the message says when. */
static void say_when(struct candidate *candidate)
{
    if (candidate->stage != STAGE_PROBE)
        return;
    const int64_t now = (int64_t)time(NULL);
    char *longer = text_format("%s (tried %lld s ago; it is tried again in %lld s)",
                               message_of(candidate), (long long)(now - candidate->tried),
                               (long long)(candidate->retry - now));
    if (!longer)
        return;
    free(candidate->message);
    candidate->message = longer;
}

/* Whether the files that the verdict lists are as they were, and no op is untested if all are to be
 * tested. */
static bool is_enough(const struct hw_context *context, const struct verdict *verdict)
{
    return !verdict ||
           (depends_hold(verdict->depends) &&
            (!context->settings.probe_full || verdict->reason || !verdict->untested));
}

static void forget(struct candidate *candidate)
{
    verdict_free(candidate->verdict);
    free(candidate->verdict);
    candidate->verdict = NULL;
    forgive(candidate);
    candidate->stage = STAGE_PROBE;
}

bool recall(struct hw_context *context, struct candidate *candidate)
{
    struct cached found;
    if (!cache_find(context, candidate, &found))
        return false;
    const bool good = probe_accept(candidate, found.bytes, found.size);
    free(found.bytes);
    candidate->recalled = good && is_enough(context, candidate->verdict);
    if (good && !candidate->recalled)
        forget(candidate);
    if (!candidate->recalled)
        return false;
    candidate->tried = found.written;
    candidate->retry = found.expires;
    log_line(&context->log, HW_LOG_DEBUG, "%s is not tried: its verdict is known",
             candidate->path);
    if (candidate->reason)
        say_when(candidate);
    return true;
}

void recall_dates(struct hw_context *context, struct candidate *candidate)
{
    struct cached entry;
    const enum reason reason = candidate->reason;
    candidate->tried = candidate->retry = (int64_t)time(NULL); /* at every start */
    if (reason && !reason_is_kept(reason))
        return;
    if (!cache_find(context, candidate, &entry)) {
        cache_tell(context, candidate);
        return;
    }
    candidate->tried = entry.written;
    candidate->retry = entry.expires;
    free(entry.bytes);
}
