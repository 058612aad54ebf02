/* SPDX-License-Identifier: MIT */
/* worker.c - takes one plugin through the stages of the library, in this process, and opens
 * each of its devices. */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"

#include "base/fork.h"
#include "base/message.h"
#include "base/platform.h"
#include "open/context.h"
#include "open/ladder.h"
#include "open/load.h"
#include "open/registry.h"
#include "open/scan.h"
#include "open/select.h"
#include "open/trust.h"
#include "run/args.h"
#include "run/device.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct worker {
    const struct request *request;
    struct progress *progress;
    struct verdict *verdict;
    struct hw_context context;
    struct candidate *candidate;
};

__attribute__((format(printf, 2, 3))) static void say(struct worker *worker,
                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(worker->progress->text, sizeof worker->progress->text, format, arguments);
    va_end(arguments);
}

/* ---- the file ---- */

/* The parent's checks hold for the file that it looked at, and for no other. */
static bool is_same_file(struct worker *worker)
{
    const struct request *request = worker->request;
    struct stat file;
    if (fstat(worker->candidate->fd, &file) == 0 && file.st_dev == request->device &&
        file.st_ino == request->inode && (uint64_t)file.st_size == request->size &&
        file.st_mtim.tv_sec == request->seconds &&
        file.st_mtim.tv_nsec == request->nanoseconds)
        return true;
    return stop(worker->candidate, REASON_CHANGED_FILE, NULL);
}

/* The path may have any name, because it is the one without links. */
static bool find_file(struct worker *worker)
{
    struct hw_context *context = &worker->context;
    if (selection_read(context, false) ||
        scan_file(context, worker->request->file, "hw-probe"))
        return false;
    struct candidate *candidate = worker->candidate = context->candidates;
    candidate->reason = REASON_NONE;
    candidate->name[0] = '\0';
    candidate->explicit_file = true;
    return true;
}

/* What the application has loaded, the plugin finds there by its name alone, wherever it lies.
 * What cannot be loaded here is missed later, by preflight. */
static void load_libraries(struct worker *worker)
{
    const struct request *request = worker->request;
    struct distrust distrust;
    say(worker, "while libraries that the application has loaded were loaded");
    for (uint32_t i = 0; i < request->library_count; i++) {
        const int fd = trust_open(request->libraries[i], request->settings.trust, NULL,
                                  &distrust);
        if (fd < 0)
            continue;
        close(fd);
        if (!dlopen(request->libraries[i], RTLD_NOW | RTLD_LOCAL))
            dlerror(); /* discards the message */
    }
    say(worker, "before it was loaded");
}

/* ---- the plugin ---- */

static void fill_devices(struct worker *worker)
{
    struct hw_context *context = &worker->context;
    struct verdict *verdict = worker->verdict;
    const uint32_t count = context->unselected_count;
    verdict->devices = calloc(count + 1, sizeof *verdict->devices);
    verdict->device_count = verdict->devices ? count : 0;
    for (uint32_t i = 0; i < verdict->device_count; i++)
        verdict->devices[i].info = context->unselected[i]->info;
    if (!verdict->devices)
        stop(worker->candidate, REASON_NO_MEMORY, NULL);
}

/* Opens and closes each device. Returns how many can be opened. */
static uint32_t open_devices(struct worker *worker)
{
    struct verdict *verdict = worker->verdict;
    uint32_t good = 0;
    for (uint32_t i = 0; i < verdict->device_count; i++) {
        struct hw_device *device = worker->context.unselected[i];
        say(worker, "while its device %u was opened", (unsigned)i);
        const enum hw_status status = device_wake(device);
        if (status)
            verdict->devices[i].fault = strdup(hw_message());
        good += !status;
        say(worker, "while its device %u was closed", (unsigned)i);
        device_sleep(device);
    }
    return good;
}

static void fill_table(struct worker *worker)
{
    const struct plugin *plugin = worker->candidate->plugin;
    struct verdict *verdict = worker->verdict;
    verdict->version = strdup(plugin->table.version);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        verdict->ops |= (uint64_t)plugin_has(plugin, op) << op;
}

static void run_plugin(struct worker *worker)
{
    struct candidate *candidate = worker->candidate;
    struct verdict *verdict = worker->verdict;
    say(worker, "while it was loaded and started");
    if (!climb_rest(&worker->context, candidate))
        return;
    fill_table(worker);
    fill_devices(worker);
    const uint64_t start = microseconds_now();
    if (!candidate->reason && !open_devices(worker))
        stop(candidate, REASON_DEVICE_FAILED, "none of its devices can be opened: %s",
             verdict->devices[0].fault ? verdict->devices[0].fault : "");
    verdict->microseconds[PART_DEVICES] = microseconds_now() - start;
    verdict->microseconds[PART_LOAD] = candidate->microseconds[STAGE_BIND];
    verdict->microseconds[PART_START] = candidate->microseconds[STAGE_PROBE];
}

/* hw_close() does the same in the application. */
static void close_plugin(struct worker *worker)
{
    struct hw_context *context = &worker->context;
    say(worker, "while it was closed");
    registry_free(context);
    if (context->plugins)
        plugin_close(context->plugins);
    context->plugins = NULL;
}

/* ---- the verdict ---- */

/* A plugin that stopped has no devices. */
static void fill_reason(struct worker *worker)
{
    const struct candidate *candidate = worker->candidate;
    struct verdict *verdict = worker->verdict;
    verdict->reason = candidate ? candidate->reason : REASON_NO_MEMORY;
    if (!verdict->reason && !verdict->version)
        verdict->reason = REASON_NO_MEMORY;
    if (!verdict->reason)
        return;
    for (uint32_t i = 0; i < verdict->device_count; i++)
        free(verdict->devices[i].fault);
    verdict->device_count = 0;
    if (candidate && candidate->reason) {
        verdict->message = candidate->message ? strdup(candidate->message) : NULL;
        verdict->remedy = candidate->remedy ? strdup(candidate->remedy) : NULL;
    }
}

void worker_run(const struct request *request, struct progress *progress,
                struct verdict *verdict)
{
    struct worker worker = { .request = request,
                             .progress = progress,
                             .verdict = verdict,
                             .context = { .settings = request->settings } };
    struct hw_context *context = &worker.context;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->log.lock, NULL);
    context->generation = watch_forks();
    context->log.level = request->settings.log_level;
    context_opening(true);
    load_libraries(&worker);
    if (find_file(&worker) && climb_checks(context, worker.candidate) &&
        is_same_file(&worker)) {
        run_plugin(&worker);
        close_plugin(&worker);
    }
    fill_reason(&worker);
}
