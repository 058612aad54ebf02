/* SPDX-License-Identifier: MIT */
/* recall.c - the stage probe, with verdicts of earlier starts from the cache. */
#define _POSIX_C_SOURCE 200809L
#include "open/recall.h"

#include "base/text.h"
#include "open/cache.h"
#include "open/depends.h"
#include "open/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Whether the reason is about the plugin, not about this process. The stage trust looks at
 * directories that a verdict does not list. */
static bool is_about_plugin(enum reason reason)
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
    const bool good = child_accept(candidate, found.bytes, found.size);
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

/* Faults of devices and failures of ops are tried again: a device may have been busy, or memory may
 * have run out. */
static enum cache_kind kind_of(const struct verdict *verdict)
{
    if (is_hang(verdict->reason) || (!verdict->reason && verdict->withdrawn_count))
        return CACHE_BACKOFF;
    for (uint32_t i = 0; i < verdict->device_count; i++)
        if (verdict->devices[i].fault)
            return CACHE_FAILURE;
    return verdict->reason ? CACHE_FAILURE : CACHE_SUCCESS;
}

static void put_outcome(struct cached *entry, const struct verdict *verdict)
{
    snprintf(entry->outcome, sizeof entry->outcome, "%s",
             verdict->reason            ? reason_rows[verdict->reason].code
             : verdict->withdrawn_count ? "withdrawn"
                                        : "ok");
}

static void inherit(struct verdict *verdict, const struct verdict *before)
{
    for (uint32_t i = 0; i < verdict->device_count && i < before->device_count; i++)
        if (!before->devices[i].fault &&
            !different_fact(&before->devices[i].info, &verdict->devices[i].info))
            verdict_inherit(verdict, before, i);
}

/* Forms that passed by the old verdict need no test, even if that verdict has expired. */
static void carry_over(const struct hw_context *context, const struct candidate *candidate)
{
    struct cached entry;
    struct verdict before;
    if (!candidate->verdict || !candidate->verdict->form_count ||
        !cache_find_any(context, candidate, &entry))
        return;
    if (verdict_decode(&before, entry.bytes, entry.size)) {
        if (depends_hold(before.depends))
            inherit(candidate->verdict, &before);
        verdict_free(&before);
    }
    free(entry.bytes);
}

void remember(struct hw_context *context, struct candidate *candidate)
{
    carry_over(context, candidate);
    char none[] = "";
    const struct verdict bare = { .reason = candidate->reason,
                                  .message = candidate->message,
                                  .remedy = candidate->remedy,
                                  .depends = none };
    const struct verdict *verdict = candidate->verdict ? candidate->verdict : &bare;
    struct cached entry = { .kind = kind_of(verdict),
                            .open_end = verdict->form_count != 0 };
    candidate->tried = candidate->retry = (int64_t)time(NULL); /* at every start */
    if ((verdict->reason && !is_about_plugin(verdict->reason)) || !verdict->depends ||
        !verdict_encode(verdict, &entry.bytes, &entry.size))
        return;
    put_outcome(&entry, verdict);
    const bool kept = cache_store(context, candidate, &entry);
    candidate->tried = entry.written;
    candidate->retry = kept ? entry.expires : entry.written;
    free(entry.bytes);
}

/* Without new failures, or if the entry has expired, keeps its expiry. */
static void keep_more(struct hw_context *context, const struct candidate *candidate,
                      const struct cached *entry, const struct verdict *verdict, bool anew)
{
    struct cached more = *entry;
    if (!verdict_encode(verdict, &more.bytes, &more.size))
        return;
    more.open_end = true;
    more.kind = kind_of(verdict);
    put_outcome(&more, verdict);
    if (anew)
        cache_store(context, candidate, &more);
    else
        cache_replace(context, candidate, &more);
    free(more.bytes);
}

void remember_more(struct hw_context *context, const struct candidate *candidate,
                   const struct only *only, const struct verdict *found)
{
    struct cached entry;
    struct verdict verdict;
    const bool counts = cache_find(context, candidate, &entry);
    if (!counts && !cache_find_any(context, candidate, &entry))
        return;
    if (verdict_decode(&verdict, entry.bytes, entry.size)) {
        const uint32_t before = verdict.withdrawn_count;
        if (depends_hold(verdict.depends) &&
            verdict_add(&verdict, only->device, &only->form, found))
            keep_more(context, candidate, &entry, &verdict,
                      counts && verdict.withdrawn_count > before);
        verdict_free(&verdict);
    }
    free(entry.bytes);
}
