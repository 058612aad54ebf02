/* SPDX-License-Identifier: MIT */
/* context.c - opens a context, which takes every candidate through the ladder and selects devices;
 * and closes it. */
#define _POSIX_C_SOURCE 200809L
#include "open/context.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "base/platform.h"
#include "load/proxy.h"
#include "load/scan.h"
#include "memory/buffer.h"
#include "open/admission.h"
#include "open/candidate.h"
#include "open/first_use.h"
#include "open/ladder.h"
#include "open/rescan.h"
#include "open/select.h"
#include "route/fallback.h"
#include "settings/config.h"

#include <build_stamp.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening and closing ---- */

/* With HW_OPEN_ANYWAY, keeps the error for the report and continues. */
static enum hw_status error_tolerate(struct hw_context *context, char **error,
                                     enum hw_status status)
{
    if (!status || !(context->flags & HW_OPEN_ANYWAY) || status == HW_NO_MEMORY)
        return status;
    if (!*error)
        *error = strdup(hw_message());
    return HW_OK;
}

/* With HW_SHADOW, rejected ops fall back to later devices, so the judge must be the last device. */
static enum hw_status judge_check_order(struct hw_context *context)
{
    const struct catalog *found = catalog_of(context);
    const struct hw_device *last = found->order[found->order_count - 1];
    if (last == context->reference)
        return HW_OK;
    return fail(HW_NO_DEVICE,
                "HW_SHADOW requires %s to be the last device, because it computes ops that "
                "are wrong on the devices before it, but %s is behind it: "
                "move cpu to the end of HW_BACKENDS, or unset HW_SHADOW",
                context->reference->name, last->name);
}

/* HW_SHADOW compares with the CPU plugin that was built together with the library. */
static enum hw_status judge_find(struct hw_context *context)
{
    const struct catalog *found = catalog_of(context);
    for (uint32_t i = 0; i < found->order_count && !context->reference; i++) {
        struct hw_device *device = found->order[i];
        const struct manifest *manifest = device->plugin->candidate->manifest;
        if (device->info.kind == HW_DEVICE_CPU &&
            device->info.features & HW_FEATURE_HOST_TENSORS && manifest &&
            strcmp(manifest->build, HW_BUILD_STAMP) == 0)
            context->reference = device;
    }
    if (!context->settings.shadow)
        return HW_OK;
    if (context->reference) {
        enum hw_status status = judge_check_order(context);
        if (!status)
            status = shadow_load(context);
        if (status)
            context->settings.shadow = 0;
        return status;
    }
    context->settings.shadow = 0;
    const char *source = context->settings.value[SETTING_shadow].source;
    const bool named = strcmp(source, setting_variables[SETTING_shadow]) == 0;
    return fail(HW_NO_DEVICE,
                "HW_SHADOW%s%s%s compares results with those of the CPU plugin that was "
                "built with this library, which is not selected. Select cpu as well, after "
                "the others (HW_BACKENDS=mine,cpu, or --device mine,cpu), and do not "
                "disable it; or unset HW_SHADOW",
                named ? "" : " (", named ? "" : source, named ? "" : ")");
}

static void say_warnings(struct hw_context *context)
{
    for (const struct note *note = context->settings.warnings; note; note = note->next)
        log_line(&context->log, HW_LOG_WARN, "%s", note->text);
}

static void say_result(const struct catalog *found)
{
    for (uint32_t i = 0; i < found->order_count; i++)
        log_line(&found->context->log, HW_LOG_INFO, "%s: %s%s", found->order[i]->name,
                 found->order[i]->info.name, i == 0 ? " (default)" : "");
}

static enum hw_status open_context(struct hw_context *context,
                                   const struct hw_options *options)
{
    struct catalog *found = catalog_create(context);
    if (!found)
        return fail(HW_NO_MEMORY, "out of memory for a context");
    atomic_store(&context->found, found); /* no other thread has the context yet */
    bool anyway = (context->flags & HW_OPEN_ANYWAY) != 0;
    uint64_t start = microseconds_now();
    char **wrong = &context->open_error, **missing = &found->error;
    enum hw_status status =
        error_tolerate(context, wrong, config_read(&context->settings, options, anyway));
    context->log.level = context->settings.log_level;
    say_warnings(context);
    if (status ||
        (status = error_tolerate(context, wrong, selection_read(context, anyway))) ||
        (status = error_tolerate(context, missing, scan(found))))
        return status;
    climb_all(found);
    status = error_tolerate(context, missing, select_devices(found));
    if (!status)
        status = admission_apply(found);
    if (!status)
        status = error_tolerate(context, wrong, judge_find(context));
    context->open_microseconds = microseconds_now() - start;
    if (!status)
        say_result(found);
    return status;
}

static struct hw_context *create_context(const struct hw_options *options)
{
    struct hw_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->binding, NULL);
    pthread_mutex_init(&context->looking, NULL);
    pthread_mutex_init(&context->log.lock, NULL);
    context->generation = watch_forks();
    context->bind = plugin_bind;
    context->test = admission_test;
    context->flags = options->flags;
    context->log.fn = options->log_fn;
    context->log.user = options->log_user;
    context->start_fn = options->start_fn;
    context->start_user = options->start_user;
    return context;
}

static void close_all_work(struct hw_context *context)
{
    /* Queues first: their pending work uses all other objects. */
    while (context->queues)
        hw_queue_close(context->queues);
    while (context->graphs)
        hw_graph_free(context->graphs);
    while (context->events)
        hw_event_free(context->events);
    while (context->kernels)
        hw_kernel_free(context->kernels);
    while (context->buffers)
        hw_buffer_free(&context->buffers->base);
    fallback_notes_free(context);
}

void hw_close(struct hw_context *context)
{
    /* A forked child must not touch objects of a driver. The memory is not freed. */
    if (!context || forked(context->generation))
        return;
    /* It may be the message of a failed hw_open(). */
    const struct saved_message saved = message_save();
    close_all_work(context);
    catalog_free_all(atomic_load(&context->found));
    selection_free(context);
    config_free(&context->settings);
    free(context->open_error);
    pthread_mutex_destroy(&context->log.lock);
    pthread_mutex_destroy(&context->binding);
    pthread_mutex_destroy(&context->looking);
    pthread_mutex_destroy(&context->lock);
    free(context);
    message_restore(&saved);
}

/* The generation of the process in which this thread opens plugins. A child that is forked
 * meanwhile has another one, and opens none. */
static _Thread_local uint32_t opening = NO_GENERATION;

uint32_t context_opening(uint32_t generation)
{
    const uint32_t before = opening;
    opening = generation;
    return before;
}

bool context_is_opening(void)
{
    return opening != NO_GENERATION && !forked(opening);
}

enum hw_status hw_open(const struct hw_options *options, struct hw_context **context)
{
    REQUIRE(context);
    *context = NULL;
    enum hw_status status = check_fields(__func__, "options", options,
                                         offsetof(struct hw_options, backends),
                                         sizeof *options);
    if (status)
        return status;
    struct hw_options given = { .size = sizeof given };
    if (options) { /* a caller with an older header has fewer fields */
        const size_t size = options->size & ~(sizeof(void *) - 1);
        memcpy(&given, options, size < sizeof given ? size : sizeof given);
    }
    if (given.flags & ~(uint32_t)HW_OPEN_ANYWAY)
        return fail(HW_INVALID, "hw_open: unknown flags 0x%x", (unsigned)given.flags);
    if (context_is_opening())
        return fail(HW_INVALID, "hw_open: called by a plugin that is being opened");

    struct hw_context *made = create_context(&given);
    if (!made)
        return fail(HW_NO_MEMORY, "out of memory for a context");
    const uint32_t before = context_opening(made->generation);
    status = open_context(made, &given);
    context_opening(before);
    if (status)
        hw_close(made);
    else
        *context = made;
    return status;
}
