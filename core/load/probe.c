/* SPDX-License-Identifier: MIT */
/* probe.c - the stage probe in a process of its own. The process of a plugin is a grandchild:
 * hw-probe watches over it, ends it and all that it started at the deadline, and replies in
 * its place. The library only looks whether hw-probe has ended, or was stopped. */
#define _DEFAULT_SOURCE
#include "load/probe.h"

#include "base/platform.h"
#include "base/process.h"
#include "base/text.h"
#include "cache/depends.h"
#include "load/loaded.h"
#include "load/trust.h"
#include "load/verdict.h"
#include "settings/config.h"

#include <build_stamp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FAREWELL 100000 /* microseconds for the end of hw-probe, once it has replied */

/* For each processor. Most plugins wait for their driver, and one that hangs holds up no other. */
#define PLUGINS_AT_ONCE 4
#define JOBS            64 /* at most, with any number of processors */

/* A second. The library looks whether hw-probe was stopped, for instance by the plugin. */
#define LOOKS 10

/* The settings that affect the start of a plugin and the checks of its file. */
static const enum setting passed_on[] = { SETTING_trust,        SETTING_probe_timeout,
                                          SETTING_threads,      SETTING_precision,
                                          SETTING_memory_limit, SETTING_cache_dir,
                                          SETTING_log,          SETTING_kernel,
                                          SETTING_probe };
#define PASSED_ON (sizeof passed_on / sizeof *passed_on)

const char probe_other[8] = { 'h', 'w', 'o', 't', 'h', 'e', 'r', '1' };

struct job {
    struct candidate *candidate;
    struct process process;
    uint64_t start;
    uint32_t stopped; /* looks in a row at which hw-probe was stopped */
    unsigned char *reply;
    size_t size;
    int error; /* why the reply cannot be read; ENOMEM: no memory for the reply */
};

struct jobs {
    struct hw_context *context;
    char *program;           /* the path of the helper */
    const struct only *only; /* the only form to test; NULL: the whole admission test */
    struct job running[JOBS];
    size_t count; /* of those that run */
    uint64_t looked;
};

/* ---- starting ---- */

#define ARGUMENTS (PROBE_SETTINGS + PASSED_ON + LIBRARIES_MAX + 4)

struct arguments {
    char *text[ARGUMENTS + 1]; /* ended by NULL */
    size_t count;
    bool incomplete; /* memory ran out */
};

void probe_command_free(char **command)
{
    for (size_t i = 0; command && i < ARGUMENTS; i++)
        free(command[i]);
    free(command);
}

/* Takes the text, which is NULL if memory ran out. */
static void arguments_add(struct arguments *arguments, char *text)
{
    if (text)
        arguments->text[arguments->count++] = text;
    else
        arguments->incomplete = true;
}

/* "only=0,5,1,0,0,0,0,0,0,0" */
static char *write_only(const struct only *only)
{
    char text[16 * (MAX_OPERANDS + 2)];
    int used = snprintf(text, sizeof text, "only=%u,%u", (unsigned)only->device,
                        (unsigned)only->form.op);
    for (int i = 0; i < MAX_OPERANDS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%d",
                         (int)only->form.dtype[i]);
    return strdup(text);
}

/* Returns the command that probe_command_free() frees; NULL: memory ran out. `ended`: the reason
 * that hw-probe only keeps. */
static char **arguments_make(const struct jobs *jobs, const struct candidate *candidate,
                             enum reason ended)
{
    const struct settings *settings = &jobs->context->settings;
    struct arguments *arguments = calloc(1, sizeof *arguments);
    struct stat file;
    if (!arguments || fstat(candidate->fd, &file)) {
        free(arguments);
        return NULL;
    }
    arguments_add(arguments, strdup(jobs->program));
    arguments_add(arguments, strdup(HW_BUILD_STAMP));
    arguments_add(arguments, strdup(candidate->path));
    arguments_add(arguments, strdup(candidate->real));
    arguments_add(arguments, strdup(identity_of(&file).text));
    for (size_t i = 0; i < PASSED_ON; i++)
        arguments_add(arguments, text_format("%s=%s", setting_fields[passed_on[i]],
                                             settings->value[passed_on[i]].text));
    if (jobs->only)
        arguments_add(arguments, write_only(jobs->only));
    if (candidate->plugin && candidate->plugin->out_of_process)
        arguments_add(arguments,
                      text_format("call_seconds=%u",
                                  (unsigned)candidate->plugin->proxy.call_seconds));
    if (candidate->key && !settings->elevated)
        arguments_add(arguments, text_format("key=%lld %s\n%s", (long long)time(NULL),
                                             candidate->name, candidate->key));
    if (ended)
        arguments_add(arguments, text_format("ended=%u", (unsigned)ended));
    loaded_list("library=", arguments->text + arguments->count, LIBRARIES_MAX);
    if (!arguments->incomplete)
        return arguments->text;
    probe_command_free(arguments->text);
    return NULL;
}

static void job_start(struct jobs *jobs, struct candidate *candidate)
{
    struct job job = { .candidate = candidate, .start = microseconds_now() };
    log_line(&jobs->context->log, HW_LOG_DEBUG, "trying %s in a process of its own",
             candidate->path);
    char **command = arguments_make(jobs, candidate, REASON_NONE);
    const int error = command ? process_start(&job.process, command) : ENOMEM;
    if (error) /* after a shortage, nothing is wrong with the program */
        stop(candidate, is_shortage(error) ? REASON_NO_MEMORY : REASON_NO_HELPER,
             "%s cannot be started: %s", jobs->program, strerror(error));
    else
        jobs->running[jobs->count++] = job;
    probe_command_free(command);
}

/* ---- ending ---- */

/* hw-probe could not keep its verdict, because it was ended: another process of it does that. */
static void keep_end(const struct jobs *jobs, const struct candidate *candidate)
{
    struct process process;
    char **command = arguments_make(jobs, candidate, candidate->reason);
    if (command && !process_start(&process, command))
        (void)process_end(&process, 10 * FAREWELL);
    probe_command_free(command);
}

/* `late`: the helper was stopped. */
static bool no_reply(struct candidate *candidate, const char *helper,
                     const unsigned char *reply, size_t size, bool late)
{
    if (late)
        return stop(candidate, REASON_WATCHER_STOPPED, NULL);
    if (size == sizeof probe_other && !memcmp(reply, probe_other, size)) {
        stop(candidate, REASON_NO_HELPER,
             "%s is of another build than the library in this process", helper);
        set_remedy(candidate,
                   "Restart the program; if that does not help, install library "
                   "and %s of one build",
                   helper);
        return false;
    }
    if (size)
        return stop(candidate, REASON_WATCHER_KILLED, NULL);
    return stop(candidate, REASON_NO_HELPER, "%s ended without a reply: it is damaged",
                helper);
}

bool probe_accept(struct candidate *candidate, const unsigned char *bytes, size_t size)
{
    struct verdict *verdict = calloc(1, sizeof *verdict);
    if (!verdict) {
        stop(candidate, REASON_NO_MEMORY, NULL);
        return true;
    }
    if (!verdict_decode(verdict, bytes, size)) {
        const bool no_memory = errno == ENOMEM;
        free(verdict);
        if (no_memory)
            stop(candidate, REASON_NO_MEMORY, NULL);
        return no_memory;
    }
    candidate->verdict = verdict;
    candidate->locked = verdict->locked;
    if (!verdict->reason)
        return true;
    if (verdict->message)
        stop(candidate, verdict->reason, "%s", verdict->message);
    else
        stop(candidate, verdict->reason, NULL);
    if (verdict->remedy)
        set_remedy(candidate, "%s", verdict->remedy);
    else if (is_crash(verdict->reason))
        set_remedy(candidate, "%s. HW_DISABLE=%s leaves it out",
                   reason_remedy(verdict->reason), candidate->name);
    return true;
}

static void job_finish(struct jobs *jobs, size_t index, bool late)
{
    struct job *job = &jobs->running[index];
    if (job->error)
        stop(job->candidate, is_shortage(job->error) ? REASON_NO_MEMORY : REASON_NO_HELPER,
             "the reply of hw-probe cannot be read: %s", strerror(job->error));
    else if (!probe_accept(job->candidate, job->reply, job->size)) {
        no_reply(job->candidate, "hw-probe", job->reply, job->size, late);
        if (job->candidate->reason == REASON_WATCHER_STOPPED ||
            job->candidate->reason == REASON_WATCHER_KILLED)
            keep_end(jobs, job->candidate);
    }
    if (!process_end(&job->process, late ? 0 : FAREWELL))
        log_line(&jobs->context->log, HW_LOG_WARN,
                 "%s: the process that tries it was killed, but does not end",
                 job->candidate->path);
    free(job->reply);
    job->candidate->microseconds[STAGE_PROBE] += microseconds_now() - job->start;
    jobs->running[index] = jobs->running[--jobs->count];
}

/* ---- waiting ---- */

/* Whether the reply is complete. The end of the pipe does not show that, because a child that the
 * application forks meanwhile keeps the pipe open. */
static bool is_whole(const struct job *job)
{
    uint64_t stated;
    if (job->size < VERDICT_FRAME)
        return false;
    memcpy(&stated, job->reply + sizeof verdict_magic, sizeof stated);
    return job->size >= stated;
}

/* Reads the available bytes of the reply; false at its end. */
static bool job_read(struct job *job)
{
    unsigned char part[4096];
    ptrdiff_t got;
    while ((got = process_read(&job->process, part, sizeof part)) > 0) {
        if (job->size + (size_t)got > VERDICT_BYTES)
            return false;
        unsigned char *reply = realloc(job->reply, job->size + (size_t)got);
        if (!reply) {
            job->error = ENOMEM;
            return false;
        }
        memcpy(reply + job->size, part, (size_t)got);
        job->reply = reply;
        job->size += (size_t)got;
    }
    if (is_whole(job))
        return false;
    if (got < 0 && errno != EAGAIN)
        job->error = errno;
    return got < 0 && !job->error;
}

/* Counts looks instead of time, which may pass while the application is stopped itself. */
static bool is_stopped(const struct jobs *jobs, struct job *job)
{
    const bool stopped = process_is_stopped(process_state(job->process.id));
    job->stopped = stopped ? job->stopped + 1 : 0;
    return job->stopped > LOOKS * jobs->context->settings.probe_timeout;
}

static void wait_for_some(struct jobs *jobs)
{
    const struct process *processes[JOBS];
    for (size_t i = 0; i < jobs->count; i++)
        processes[i] = &jobs->running[i].process;
    process_wait(processes, jobs->count, 1000000 / LOOKS);
    const bool look = microseconds_now() - jobs->looked >= 1000000 / LOOKS;
    if (look)
        jobs->looked = microseconds_now();
    for (size_t i = jobs->count; i-- > 0;) {
        struct job *job = &jobs->running[i];
        const bool open = job_read(job), late = open && look && is_stopped(jobs, job);
        if (!open || late)
            job_finish(jobs, i, late);
    }
}

/* ---- all ---- */

char *helper_path(const struct hw_context *context, const char *name, const char *task,
                  struct distrust *why)
{
    const struct settings *settings = &context->settings;
    struct distrust cause = { REASON_NO_MEMORY, "out of memory" };
    char *path = helper_program(name, settings->elevated), *real = NULL;
    if (!path && errno != ENOMEM) {
        cause.reason = REASON_NO_HELPER;
        snprintf(cause.message, sizeof cause.message, "%s", strerror(errno));
    }
    const int fd = path ? trust_open(path, settings->trust, &real, &cause) : -1;
    if (fd >= 0)
        close(fd);
    if (!real) {
        why->reason = cause.reason == REASON_NO_MEMORY ? REASON_NO_MEMORY
                                                       : REASON_NO_HELPER;
        snprintf(why->message, sizeof why->message, "%s, which %s, cannot be used: %.600s",
                 path ? path : name, task, cause.message);
    }
    free(path);
    return real;
}

void probe_all(struct hw_context *context, struct candidate *const list[], size_t count,
               const struct only *only)
{
    struct jobs jobs = { .context = context, .only = only };
    struct distrust why;
    const unsigned processors = usable_processors();
    const size_t most = PLUGINS_AT_ONCE * (processors ? processors : 1);
    size_t next = 0;
    if (count && !(jobs.program = helper_path(context, "hw-probe", "tries plugins", &why)))
        for (; next < count; next++)
            stop(list[next], why.reason, "%s", why.message);
    while (next < count || jobs.count)
        if (next < count && jobs.count < JOBS && jobs.count < most)
            job_start(&jobs, list[next++]);
        else
            wait_for_some(&jobs);
    free(jobs.program);
}

/* ---- hw-worker, which the proxy of worker mode starts ---- */

char **probe_command(struct hw_context *context, struct candidate *candidate)
{
    struct distrust why = { REASON_NO_MEMORY, "out of memory" };
    struct jobs jobs = { .context = context,
                         .program = helper_path(context, "hw-worker", "runs plugins",
                                                &why) };
    char **command = jobs.program ? arguments_make(&jobs, candidate, REASON_NONE) : NULL;
    if (!jobs.program)
        stop(candidate, why.reason, "%s", why.message);
    else if (!command)
        stop(candidate, REASON_NO_MEMORY, NULL);
    free(jobs.program);
    return command;
}

/* The devices that the plugin left out there: it may not have been tried before. */
static void take_left_out(struct candidate *candidate, struct verdict *verdict)
{
    left_out_free(candidate->left_out, candidate->left_out_count);
    candidate->left_out = verdict->left_out;
    candidate->left_out_count = verdict->left_out_count;
    verdict->left_out = NULL;
    verdict->left_out_count = 0;
}

bool probe_replied(struct candidate *candidate, const unsigned char *reply, size_t size,
                   bool stopped)
{
    struct verdict *tried = candidate->verdict; /* the verdict of hw-probe stays */
    candidate->verdict = NULL;
    if (!probe_accept(candidate, reply, size))
        no_reply(candidate, "hw-worker", reply, size, stopped);
    if (candidate->verdict) {
        take_left_out(candidate, candidate->verdict);
        verdict_free(candidate->verdict);
        free(candidate->verdict);
    }
    candidate->verdict = tried;
    return !candidate->reason;
}
