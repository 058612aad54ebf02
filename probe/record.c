/* SPDX-License-Identifier: MIT */
/* record.c - keeps verdicts for later starts: see record.h. */
#define _POSIX_C_SOURCE 200809L
#include "probe/record.h"

#include "cache/cache.h"
#include "cache/locks.h"
#include "open/registry.h"
#include "probe/store.h"
#include "probe/verdict_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The lines are compared, not the files: this process has not loaded the application's own copies
 * of needed libraries. */
static bool same_depends(const struct verdict *a, const struct verdict *b)
{
    return a->depends && b->depends && !strcmp(a->depends, b->depends);
}

/* Forms that passed by the old verdict need no test, even if that verdict has expired. */
static void carry_over(const struct hw_context *context, const struct candidate *candidate,
                       struct verdict *verdict)
{
    struct cached entry;
    struct verdict before;
    if (!verdict->form_count || !cache_find_any(context, candidate, &entry))
        return;
    if (verdict_decode(&before, entry.bytes, entry.size)) {
        if (same_depends(&before, verdict))
            inherit(verdict, &before);
        verdict_free(&before);
    }
    free(entry.bytes);
}

void record(struct hw_context *context, const struct candidate *candidate,
            struct verdict *verdict, const struct probe_time *time)
{
    carry_over(context, candidate, verdict);
    struct cached entry = { .written = time->began,
                            .took = time->took,
                            .kind = kind_of(verdict),
                            .open_end = verdict->form_count != 0 };
    if ((verdict->reason && !reason_is_kept(verdict->reason)) || !verdict->depends ||
        !verdict_encode(verdict, &entry.bytes, &entry.size))
        return;
    put_outcome(&entry, verdict);
    (void)cache_store(context, candidate, &entry);
    free(entry.bytes);
}

/* Without new failures, or if the entry has expired, keeps its expiry. `time` is NULL
 * then. */
static void keep_more(struct hw_context *context, const struct candidate *candidate,
                      const struct cached *entry, const struct verdict *verdict,
                      const struct probe_time *time)
{
    struct cached more = *entry;
    if (!verdict_encode(verdict, &more.bytes, &more.size))
        return;
    more.open_end = true;
    more.kind = kind_of(verdict);
    more.written = time ? time->began : more.written;
    more.took = time ? time->took : 0;
    put_outcome(&more, verdict);
    if (time)
        cache_store(context, candidate, &more);
    else
        cache_replace(context, candidate, &more);
    free(more.bytes);
}

static bool is_hidden(const struct hw_context *context, const struct candidate *candidate)
{
    const int place = cache_place(context, candidate, false);
    const bool hidden = place >= 0 && bind_is_locked(place, candidate);
    if (place >= 0)
        close(place);
    return hidden;
}

/* Whether the test was of the device of the verdict: another one may have its index by now. */
static bool is_of_device(const struct verdict *verdict, const struct verdict *found,
                         uint32_t device)
{
    return device < verdict->device_count && device < found->device_count &&
           !found->devices[device].fault &&
           !different_fact(&verdict->devices[device].info, &found->devices[device].info);
}

void record_more(struct hw_context *context, const struct candidate *candidate,
                 const struct only *only, const struct verdict *found,
                 const struct probe_time *time)
{
    struct cached entry;
    struct verdict verdict;
    if (!cache_find_any(context, candidate, &entry))
        return;
    const bool counts = cache_counts(&entry, time->began) && !is_hidden(context, candidate);
    if (verdict_decode(&verdict, entry.bytes, entry.size)) {
        const uint32_t before = verdict.withdrawn_count;
        if (same_depends(&verdict, found) && is_of_device(&verdict, found, only->device) &&
            verdict_add(&verdict, only->device, &only->form, found))
            keep_more(context, candidate, &entry, &verdict,
                      counts && verdict.withdrawn_count > before ? time : NULL);
        verdict_free(&verdict);
    }
    free(entry.bytes);
}
