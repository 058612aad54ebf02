/* SPDX-License-Identifier: MIT */
/* context.c - opening: every candidate climbs the ladder, and what is left is selected
 * from. */
#define _POSIX_C_SOURCE 200809L
#include "open/ladder.h"

#include <stdlib.h>
#include <string.h>

/* ---- fork ---- */

_Atomic uint32_t process_generation;

static void in_child(void)
{
    atomic_fetch_add_explicit(&process_generation, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

enum hw_status guard(const struct hw_context *context)
{
    if (!forked(context))
        return HW_OK;
    return fail(HW_FORKED,
                "this context was opened before fork(); drivers do not survive that: "
                "open another one in this process");
}

/* ---- the ladder ---- */

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

bool is_broken(const struct candidate *candidate)
{
    switch (candidate->reason) {
    case REASON_NONE:
    case REASON_OTHER_SYSTEM:
    case REASON_SHADOWED:
    case REASON_DUPLICATE:
    case REASON_NEEDS_LIBRARY:
    case REASON_NO_HARDWARE:
    case REASON_NO_DRIVER:
    case REASON_NO_DEVICE:
        return false;
    default:
        return candidate->stage != STAGE_FILTER;
    }
}

/* From here on the candidate's code runs in this process. */
static void say_start(struct hw_context *context, const struct candidate *candidate)
{
    log_line(context, HW_LOG_DEBUG, "starting %s", candidate->path);
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

/* The load (bind) precedes the probe as long as the probe runs in this process. */
static void climb(struct hw_context *context, struct candidate *candidate)
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
    if (good && load_and_probe(context, candidate))
        candidate->stage = STAGE_BIND;
    else
        log_line(context, is_broken(candidate) ? HW_LOG_WARN : HW_LOG_DEBUG,
                 "%s is not used, stopped at %s: %s. Remedy: %s", candidate->path,
                 stage_name(candidate->stage), candidate->message ? candidate->message : "",
                 candidate->remedy ? candidate->remedy : "");
}

/* ---- opening and closing ---- */

/* With HW_OPEN_ANYWAY an error is kept for the report and the work goes on. */
static enum hw_status tolerate(struct hw_context *context, enum hw_status status)
{
    if (!status || !(context->flags & HW_OPEN_ANYWAY) || status == HW_NO_MEMORY)
        return status;
    if (!context->open_error)
        context->open_error = strdup(hw_message());
    return HW_OK;
}

static void say_warnings(struct hw_context *context)
{
    for (const struct note *note = context->settings.warnings; note; note = note->next)
        log_line(context, HW_LOG_WARN, "%s", note->text);
}

static void say_result(struct hw_context *context)
{
    for (uint32_t i = 0; i < context->device_count; i++)
        log_line(context, HW_LOG_INFO, "%s: %s%s", context->devices[i]->name,
                 context->devices[i]->info.name, i == 0 ? " (default)" : "");
}

static enum hw_status open_context(struct hw_context *context,
                                   const struct hw_options *options)
{
    bool anyway = (context->flags & HW_OPEN_ANYWAY) != 0;
    uint64_t start = microseconds_now();
    enum hw_status status = tolerate(context,
                                     config_read(&context->settings, options, anyway));
    say_warnings(context);
    if (status || (status = tolerate(context, selection_read(context, anyway))) ||
        (status = tolerate(context, scan(context))))
        return status;
    for (struct candidate *c = context->candidates; c; c = c->next)
        climb(context, c);
    status = tolerate(context, select_devices(context));
    context->open_microseconds = microseconds_now() - start;
    if (!status)
        say_result(context);
    return status;
}

static struct hw_context *create_context(const struct hw_options *options)
{
    struct hw_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->log_lock, NULL);
    context->generation = atomic_load_explicit(&process_generation, memory_order_relaxed);
    if (!options)
        return context;
    context->flags = options->flags;
    if (options->size >= offsetof(struct hw_options, log_user) + sizeof options->log_user) {
        context->log_fn = options->log_fn;
        context->log_user = options->log_user;
    }
    if (options->size >=
        offsetof(struct hw_options, start_user) + sizeof options->start_user) {
        context->start_fn = options->start_fn;
        context->start_user = options->start_user;
    }
    return context;
}

void hw_close(struct hw_context *context)
{
    /* In a forked child nothing that a driver made may be touched: the memory is left
     * alone. */
    if (!context || forked(context))
        return;
    const struct words words = words_keep(); /* why opening failed, perhaps */
    close_all_work(context);
    registry_free(context);
    while (context->plugins) {
        struct plugin *plugin = context->plugins;
        context->plugins = plugin->next;
        plugin_close(plugin);
    }
    scan_free(context);
    selection_free(context);
    config_free(&context->settings);
    free(context->open_error);
    pthread_mutex_destroy(&context->log_lock);
    pthread_mutex_destroy(&context->lock);
    free(context);
    words_restore(&words);
}

enum hw_status hw_open(const struct hw_options *options, struct hw_context **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local bool opening;
    if (!out)
        return fail(HW_INVALID, "hw_open: context may not be NULL");
    *out = NULL;
    if (options && options->size < offsetof(struct hw_options, backends))
        return fail(HW_INVALID, "hw_open: options->size is %u; set it to sizeof *options",
                    (unsigned)options->size);
    if (options && !hw_knows(options, sizeof *options))
        return fail(HW_UNSUPPORTED,
                    "hw_open: options has fields that a newer library knows; leave "
                    "them zero, or update this one");
    if (options && (options->flags & ~(uint32_t)HW_OPEN_ANYWAY))
        return fail(HW_INVALID, "hw_open: unknown flags 0x%x", (unsigned)options->flags);
    if (opening)
        return fail(HW_INVALID, "hw_open: called by a plugin that is being opened");

    pthread_once(&once, watch_forks);
    struct hw_context *context = create_context(options);
    if (!context)
        return fail(HW_NO_MEMORY, "out of memory for a context");
    opening = true;
    enum hw_status status = open_context(context, options);
    opening = false;
    if (status)
        hw_close(context);
    else
        *out = context;
    return status;
}
