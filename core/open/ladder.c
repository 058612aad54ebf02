/* SPDX-License-Identifier: MIT */
/* ladder.c - takes a candidate through the stages and times each of them. */
#include "open/ladder.h"

#include "base/platform.h"
#include "object/object.h"
#include "open/load.h"
#include "open/preflight.h"
#include "open/probe.h"
#include "open/scan.h"
#include "open/select.h"
#include "open/trust.h"

#include <stdlib.h>

typedef bool stage_fn(struct hw_context *context, struct candidate *candidate);

static bool climb_stage(struct hw_context *context, struct candidate *candidate,
                        enum stage stage, stage_fn *run)
{
    candidate->stage = stage;
    uint64_t start = microseconds_now();
    bool passed = run(context, candidate);
    candidate->microseconds[stage] += microseconds_now() - start;
    return passed;
}

/* From now on, the code of the candidate runs in this process. */
static void say_start(struct hw_context *context, const struct candidate *candidate)
{
    log_line(&context->log, HW_LOG_DEBUG, "starting %s", candidate->path);
    if (context->start_fn)
        context->start_fn(context->start_user, candidate->path);
}

static void say_started(struct hw_context *context)
{
    if (context->start_fn)
        context->start_fn(context->start_user, NULL);
}

static bool load_and_probe(struct hw_context *context, struct candidate *candidate)
{
    say_start(context, candidate);
    bool good = climb_stage(context, candidate, STAGE_BIND, load) &&
                climb_stage(context, candidate, STAGE_PROBE, probe);
    say_started(context);
    return good;
}

/* Bind precedes the probe because the probe runs in this process. */
void climb(struct hw_context *context, struct candidate *candidate)
{
    static const struct {
        enum stage stage;
        stage_fn *run;
    } ladder[] = {
        { STAGE_LIST, first_of_name },
        { STAGE_FILTER, filter },
        { STAGE_TRUST, trust_check },
        { STAGE_PREFLIGHT, preflight },
    };
    bool good = !candidate->reason;
    for (size_t i = 0; i < sizeof ladder / sizeof *ladder && good; i++)
        good = climb_stage(context, candidate, ladder[i].stage, ladder[i].run);
    good = good && load_and_probe(context, candidate);
    if (candidate->object)
        object_free(candidate->object);
    free(candidate->object);
    candidate->object = NULL;
    if (good)
        candidate->stage = STAGE_BIND;
    else
        log_line(&context->log, is_broken(candidate) ? HW_LOG_WARN : HW_LOG_DEBUG,
                 "%s is not used, stopped at %s: %s. Remedy: %s", candidate->path,
                 stage_name(candidate->stage), message_of(candidate), remedy_of(candidate));
}
