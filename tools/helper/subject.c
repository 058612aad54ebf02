/* SPDX-License-Identifier: MIT */
/* subject.c - takes one plugin through the library's stages, in this process. */
#define _POSIX_C_SOURCE 200809L
#include "subject.h"

#include "base/fork.h"
#include "call/args.h"
#include "load/bind.h"
#include "load/scan.h"
#include "open/context.h"
#include "open/ladder.h"
#include "open/select.h"
#include "probe/witness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void subject_say(struct subject *subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(subject->progress->text, sizeof subject->progress->text, format, arguments);
    va_end(arguments);
}

/* ---- the file ---- */

/* The parent has checked this very file: its checks hold for no other one. */
static bool is_same_file(struct subject *subject)
{
    const struct request *request = subject->request;
    struct stat file;
    return (fstat(subject->candidate->fd, &file) == 0 &&
            strcmp(identity_of(&file).text, request->identity) == 0) ||
           stop(subject->candidate, REASON_CHANGED_FILE, NULL);
}

/* The path has no links left, so its file may have any name. */
static bool find_file(struct subject *subject)
{
    struct hw_context *context = &subject->context;
    if (selection_read(context, false) ||
        scan_file(&subject->found, subject->request->file, "library"))
        return false;
    struct candidate *candidate = subject->candidate = subject->found.candidates;
    candidate->reason = REASON_NONE;
    candidate->name[0] = '\0';
    candidate->explicit_file = true;
    return true;
}

/* Checks the file, and tells the watcher what the result depends on. */
static bool examine_file(struct subject *subject)
{
    const struct request *request = subject->request;
    struct progress *progress = subject->progress;
    const struct examined *examined = &subject->examined;
    const struct application application = { .trust = request->settings.trust,
                                             .elevated = request->settings.elevated,
                                             .path = request->found,
                                             .libraries = request->libraries,
                                             .count = request->library_count };
    subject_say(subject, "while its libraries were examined");
    const bool good = examine(&application, subject->candidate, &subject->examined);
    subject->verdict->depends = examined->depends ? strdup(examined->depends) : NULL;
    subject->verdict->locked = progress->locked = examined->locked;
    if (examined->depends)
        strcpy(progress->depends, examined->depends);
    progress->examined = examined->depends != NULL;
    progress->phase = PHASE_START;
    subject_say(subject, "before it was loaded");
    return good;
}

/* ---- between loading and starting it ---- */

static struct subject *the_subject; /* that is being loaded */

static bool is_unchanged(struct subject *subject, bool handlers, const char *when)
{
    const enum reason changed = witness_end(subject->witness, handlers);
    subject->witness = NULL;
    return !changed || stop(subject->candidate, changed, "%s while it %s",
                            reason_rows[changed].sentence, when);
}

static bool look_at_loaded(struct hw_context *context, struct candidate *candidate)
{
    struct subject *subject = the_subject;
    (void)context;
    if (!is_unchanged(subject, true, "was loaded") ||
        !(candidate->plugin->out_of_process ||
          examine_linked(&subject->examined, candidate)))
        return false;
    subject->witness = witness_begin();
    return true;
}

void subject_begin(struct subject *subject, const struct request *request,
                   struct progress *progress, struct verdict *verdict)
{
    struct hw_context *context = &subject->context;
    *subject = (struct subject){ .request = request,
                                 .progress = progress,
                                 .verdict = verdict,
                                 .context = { .settings = request->settings } };
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->binding, NULL);
    pthread_mutex_init(&context->log.lock, NULL);
    context->generation = watch_forks();
    context->log.level = request->settings.log_level;
    context->settings.fallback = FALLBACK_ERROR;
    subject->found.context = context;
    context->found = &subject->found;
    context->loaded_fn = look_at_loaded;
    context_opening(context->generation);
    the_subject = subject;
}

bool subject_find(struct subject *subject)
{
    return find_file(subject) && climb_checks(&subject->context, subject->candidate) &&
           is_same_file(subject) && examine_file(subject);
}

/* ---- the plugin ---- */

static void fill_devices(struct subject *subject)
{
    const struct hw_device *first = subject->candidate->plugin->devices;
    struct verdict *verdict = subject->verdict;
    uint32_t count = 0;
    for (const struct hw_device *device = first; device; device = device->next)
        count++;
    verdict->devices = calloc(count + 1, sizeof *verdict->devices);
    if (!verdict->devices) {
        stop(subject->candidate, REASON_NO_MEMORY, NULL);
        return;
    }
    for (const struct hw_device *device = first; device; device = device->next)
        verdict->devices[verdict->device_count++].info = device->info;
}

static void fill_table(struct subject *subject)
{
    const struct plugin *plugin = subject->candidate->plugin;
    struct verdict *verdict = subject->verdict;
    verdict->version = strdup(plugin->table.version);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        verdict->ops |= (uint64_t)plugin_has(plugin, op) << op;
}

bool subject_start(struct subject *subject)
{
    subject_say(subject, "while it was loaded and started");
    subject->witness = witness_begin();
    if (!climb_to_list(&subject->context, subject->candidate) ||
        !is_unchanged(subject, false, "started"))
        return false;
    fill_table(subject);
    fill_devices(subject);
    return !subject->candidate->reason;
}

/* hw_close() does the same in the application. */
void subject_close(struct subject *subject)
{
    subject->progress->phase = PHASE_CLOSE;
    subject_say(subject, "while it was closed");
    if (subject->found.plugins) {
        registry_drop(subject->found.plugins);
        plugin_close(subject->found.plugins);
    }
    subject->found.plugins = NULL;
}

/* The devices that the plugin leaves out, even if it stopped because no others remain. */
static void take_left_out(struct verdict *verdict, struct candidate *candidate)
{
    if (!candidate)
        return;
    verdict->left_out = candidate->left_out;
    verdict->left_out_count = candidate->left_out_count;
    candidate->left_out = NULL;
    candidate->left_out_count = 0;
}

/* A plugin that stopped has no devices. */
void subject_reason(struct subject *subject)
{
    const struct candidate *candidate = subject->candidate;
    struct verdict *verdict = subject->verdict;
    if (!verdict->reason)
        verdict->reason = candidate ? candidate->reason : REASON_NO_MEMORY;
    if (!verdict->reason && !verdict->version)
        verdict->reason = REASON_NO_MEMORY;
    take_left_out(verdict, subject->candidate);
    if (!verdict->reason)
        return;
    for (uint32_t i = 0; i < verdict->device_count; i++)
        free(verdict->devices[i].fault);
    verdict->device_count = verdict->withdrawn_count = verdict->form_count = 0;
    if (candidate && candidate->reason) {
        verdict->message = candidate->message ? strdup(candidate->message) : NULL;
        verdict->remedy = candidate->remedy ? strdup(candidate->remedy) : NULL;
    }
}
