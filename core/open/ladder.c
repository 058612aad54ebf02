/* SPDX-License-Identifier: MIT */
/* ladder.c - takes a candidate through the stages and times each of them. */
#define _POSIX_C_SOURCE 200809L
#include "open/ladder.h"

#include "base/platform.h"
#include "cache/cache.h"
#include "cache/depends.h"
#include "cache/key.h"
#include "cache/locks.h"
#include "load/bind.h"
#include "load/match.h"
#include "load/preflight.h"
#include "load/probe.h"
#include "load/scan.h"
#include "load/start.h"
#include "load/trust.h"
#include "load/verdict.h"
#include "open/admission.h"
#include "open/registry.h"
#include "open/select.h"
#include "settings/variables.h"

#include <build_stamp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Tells the application whose code runs in this process from now on; NULL: no more. */
static void say_running(struct hw_context *context, const char *path)
{
    if (path)
        log_line(&context->log, HW_LOG_DEBUG, "starting %s", path);
    if (context->start_fn)
        context->start_fn(context->start_user, path);
}

/* Loads and starts the plugin. If another process has probed it, both count as the stage bind. */
static bool load_and_start(struct hw_context *context, struct candidate *candidate)
{
    const enum stage starting = candidate->plugin->candidate->verdict ? STAGE_BIND
                                                                      : STAGE_PROBE;
    say_running(context, candidate->path);
    struct variables *before = variables_keep();
    bool good = climb_stage(context, candidate, STAGE_BIND, plugin_load) &&
                (!context->loaded_fn || context->loaded_fn(context, candidate)) &&
                climb_stage(context, candidate, starting, plugin_start);
    variables_restore(before);
    say_running(context, NULL);
    if (good)
        candidate->stage = STAGE_BIND;
    return good;
}

bool climb_checks(struct hw_context *context, struct candidate *candidate)
{
    static const struct {
        enum stage stage;
        stage_fn *run;
    } ladder[] = {
        { STAGE_LIST, first_of_name }, { STAGE_FILTER, filter },
        { STAGE_TRUST, trust_check },  { STAGE_PREFLIGHT, preflight },
        { STAGE_MATCH, match },        { STAGE_PREFLIGHT, key_end },
    };
    bool good = !candidate->reason;
    for (size_t i = 0; i < sizeof ladder / sizeof *ladder && good; i++)
        good = climb_stage(context, candidate, ladder[i].stage, ladder[i].run);
    candidate->passed = good;
    return good;
}

/* Loads and starts the plugin while no other thread binds one. */
static bool start_alone(struct hw_context *context, struct candidate *candidate)
{
    pthread_mutex_lock(&context->binding);
    const bool good = load_and_start(context, candidate);
    pthread_mutex_unlock(&context->binding);
    return good;
}

/* Whether a verdict has the same devices as the verdict from which the plugin's were listed. */
static bool same_devices(const struct plugin *plugin, const struct verdict *verdict)
{
    const struct verdict *before = plugin->candidate->verdict;
    bool same = before && before->device_count == verdict->device_count;
    for (uint32_t i = 0; same && i < verdict->device_count; i++)
        same = !registry_differs(plugin, i, &verdict->devices[i].info) &&
               !before->devices[i].fault == !verdict->devices[i].fault;
    return same;
}

/* Returns the plugin of this name if its bind failed and a new probe has found the same devices:
 * these can be used again. Otherwise NULL. */
static struct plugin *plugin_revived(const struct candidate *candidate)
{
    struct plugin *plugin = plugin_named(candidate->found, candidate->name);
    return plugin && !plugin_is_alive(plugin) && candidate->verdict &&
                   same_devices(plugin, candidate->verdict)
               ? plugin
               : NULL;
}

bool climb_to_list(struct hw_context *context, struct candidate *candidate)
{
    struct catalog *found = candidate->found;
    struct plugin *plugin = NULL;
    if (!candidate->reason && (candidate->plugin = plugin_revived(candidate))) {
        candidate_close(candidate);
        return true;
    }
    if (!candidate->reason)
        candidate->plugin = plugin = plugin_create(context, candidate);
    const bool good = plugin && (candidate->verdict ? list_known(plugin)
                                                    : start_alone(context, candidate));
    candidate_close(candidate);
    if (good) {
        plugin->bound = candidate->verdict ? BOUND_NOT_YET : BOUND;
        plugin->next = found->plugins;
        found->plugins = plugin;
    } else if (plugin) {
        registry_drop(plugin);
        plugin_close(plugin);
        candidate->plugin = NULL;
    }
    return good;
}

static void say_stopped(struct hw_context *context, const struct candidate *candidate,
                        bool warn)
{
    log_line(&context->log, warn ? HW_LOG_WARN : HW_LOG_DEBUG,
             "%s is not used, stopped at %s: %s. Remedy: %s", candidate->path,
             stage_name(candidate->stage), message_of(candidate), remedy_of(candidate));
}

bool is_own(const struct candidate *candidate)
{
    const struct manifest *manifest = candidate->manifest;
    return *manifest->build && strcmp(manifest->build, HW_BUILD_STAMP) == 0 &&
           !manifest->need_count && !manifest->match_count;
}

static bool is_flawless(const struct verdict *verdict)
{
    bool good = !verdict->reason && !verdict->withdrawn_count;
    for (uint32_t i = 0; i < verdict->device_count; i++)
        good = good && !verdict->devices[i].fault;
    return good;
}

/* A plugin of this build is tried only because its file may be damaged. If it is sound, it is bound
 * immediately and lists its devices here. Without hw-probe, it is trusted like the library. */
static void accept_own_plugin(struct hw_context *context, struct candidate *candidate)
{
    if (!candidate->passed || is_in_use(candidate) || !is_own(candidate))
        return;
    if (candidate->reason == REASON_NO_HELPER && !trust_has_lock(candidate)) {
        log_line(&context->log, HW_LOG_WARN,
                 "%s is loaded without being tried: %s. Remedy: %s", candidate->path,
                 message_of(candidate), remedy_of(candidate));
        candidate_clear(candidate);
    }
    if (!candidate->reason && candidate->verdict && is_flawless(candidate->verdict)) {
        verdict_free(candidate->verdict);
        free(candidate->verdict);
        candidate->verdict = NULL;
    }
}

/* Tries the candidates whose verdict is still unknown, and releases this process's locks on all. */
static void try_all(struct hw_context *context, struct candidate **list, size_t count)
{
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++)
        if (cache_load(context, list[i])) /* another process was faster */
            probe_unlock(list[i]);
        else
            list[unknown++] = list[i];
    probe_all(context, list, unknown, NULL);
    for (size_t i = 0; i < unknown; i++) {
        cache_load_dates(context, list[i]);
        probe_unlock(list[i]);
    }
}

/* Tries each candidate as soon as no other process tries it. Waits for other processes at most as
 * long as a probe usually takes, and never while they may wait for this process. */
static void try_in_turn(struct hw_context *context, struct candidate **list, size_t count)
{
    const uint64_t end = microseconds_now() +
                         context->settings.probe_timeout * UINT64_C(1000000);
    while (count) {
        const bool late = microseconds_now() >= end;
        size_t own = 0;
        for (size_t i = 0; i < count; i++)
            if (probe_lock(context, list[i]) || late) {
                struct candidate *ours = list[i];
                list[i] = list[own];
                list[own++] = ours;
            }
        try_all(context, list, own);
        list += own;
        count -= own;
        if (count)
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
}

/* Whether hw-probe has stopped the candidate before it loaded the file. */
static bool was_only_read(struct candidate *candidate)
{
    if (!candidate->passed || !candidate->reason || candidate->stage > STAGE_PREFLIGHT)
        return false;
    candidate->passed = false;
    return true;
}

/* Probes in a child process every candidate that has just passed the checks. Returns whether some
 * file stopped before it was loaded, and so does not shadow later ones any more. */
static bool probe_passed(struct catalog *found)
{
    struct hw_context *context = found->context;
    size_t count = 0, some = 0;
    bool any = false;
    for (struct candidate *c = found->candidates; c; c = c->next)
        count += c->passed;
    struct candidate **list = calloc(count + 1, sizeof *list);
    for (struct candidate *c = found->candidates; c; c = c->next) {
        if (!c->passed || c->stage >= STAGE_PROBE)
            continue;
        c->stage = STAGE_PROBE;
        if (cache_load(context, c))
            continue;
        if (list)
            list[some++] = c;
        else
            stop(c, REASON_NO_MEMORY, NULL);
    }
    try_in_turn(context, list, some);
    free(list);
    for (struct candidate *c = found->candidates; c; c = c->next) {
        accept_own_plugin(context, c);
        any = was_only_read(c) || any;
    }
    return any;
}

/* Takes files through the checks that stopped because an earlier file had the same name. Returns
 * whether one passed. */
static bool climb_shadowed(struct catalog *found)
{
    bool any = false;
    for (struct candidate *c = found->candidates; c; c = c->next) {
        if (c->reason != REASON_SHADOWED)
            continue;
        candidate_close(c);
        candidate_forget(c);
        any = climb_checks(found->context, c) || any;
    }
    return any;
}

/* Whether an earlier search has found the same reason for this file. */
static bool is_old_news(const struct candidate *candidate)
{
    const struct candidate *c = catalog_of(candidate->found->context)->candidates;
    while (c && strcmp(c->path, candidate->path) != 0)
        c = c->next;
    return !catalog_is_first(candidate->found) && c && c->reason == candidate->reason;
}

void climb_all(struct catalog *found)
{
    struct hw_context *context = found->context;
    for (struct candidate *c = found->candidates; c; c = c->next)
        if (!is_in_use(c))
            climb_checks(context, c);
    if (context->settings.probe != PROBE_INPROC)
        while (probe_passed(found) && climb_shadowed(found))
            ;
    for (struct candidate *c = found->candidates; c; c = c->next)
        if (!is_in_use(c) && !climb_to_list(context, c))
            say_stopped(context, c, is_broken(c) && !is_old_news(c));
}

/* ---- later, when a device is used ---- */

/* Whether the latest verdict on the plugin holds for the file: the keys agree, and the files that
 * the verdict lists are as they were. */
static bool still_holds(const struct candidate *now,
                        bool (*agree)(const char *key, const char *other))
{
    const char *key = atomic_load(&now->plugin->latest)->key;
    const struct verdict *verdict = now->plugin->verdict;
    return key && now->key && agree(key, now->key) && verdict &&
           depends_hold(verdict->depends);
}

static bool same_key(const char *key, const char *other)
{
    return strcmp(key, other) == 0;
}

/* Probes the plugin again, because the verdict does not hold any more. */
static bool try_again(struct hw_context *context, struct candidate *candidate)
{
    candidate->stage = STAGE_PROBE;
    try_in_turn(context, &candidate, 1);
    if (!candidate->reason && admission_renew(candidate->plugin, candidate->verdict))
        stop(candidate, REASON_NO_MEMORY, NULL);
    return !candidate->reason;
}

/* Whether a retry may succeed. If descriptors ran out, the candidate can have any reason, such as a
 * library that was not found. */
static bool is_passing(const struct candidate *candidate)
{
    return candidate->retryable || candidate->reason == REASON_NO_MEMORY ||
           !descriptors_left();
}

/* Binds a plugin that was tried in another process. Its verdict is hidden meanwhile: if the plugin
 * ends or blocks this process, or has other devices than the verdict says, the next start tries the
 * plugin again. */
static bool bind_tried(struct hw_context *context, struct candidate *candidate)
{
    bind_lock(context, candidate);
    const bool good = load_and_start(context, candidate);
    candidate->retryable = !good && is_passing(candidate);
    bind_unlock(context, candidate, good || candidate->retryable);
    return good;
}

/* Repeats the checks of a file that has passed them before, and makes a new key. */
static bool check_again(struct hw_context *context, struct candidate *candidate)
{
    struct catalog now = { .context = context };
    candidate->found = &now;
    const bool good = climb_stage(context, candidate, STAGE_TRUST, trust_check) &&
                      climb_stage(context, candidate, STAGE_PREFLIGHT, preflight) &&
                      climb_stage(context, candidate, STAGE_PREFLIGHT, key_end);
    candidate->found = candidate->plugin->candidate->found;
    free(now.key);
    return good;
}

bool climb_to_test(struct hw_context *context, struct candidate *candidate)
{
    if (!check_again(context, candidate))
        return false;
    if (!still_holds(candidate, key_same_plugin))
        return stop(candidate, REASON_CHANGED_FILE,
                    "the file or the driver has changed since the start");
    free(candidate->key); /* hw-probe adds the result to the verdict with this key */
    candidate->key = strdup(atomic_load(&candidate->plugin->latest)->key);
    return true;
}

bool climb_to_bind(struct hw_context *context, struct candidate *candidate)
{
    const bool good = check_again(context, candidate) &&
                      (still_holds(candidate, same_key) || try_again(context, candidate)) &&
                      bind_tried(context, candidate);
    candidate->retryable = !good && is_passing(candidate);
    candidate_close(candidate);
    if (!good) /* always a warning: the device was listed before */
        say_stopped(context, candidate, true);
    return good;
}
