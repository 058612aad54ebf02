/* SPDX-License-Identifier: MIT */
/* main.c - hw-worker: has one plugin in a process of its own. hw_worker.so starts it, which the
 * library loads if HW_WORKER names the plugin. core/load/probe.h has the arguments; the answer, a
 * verdict, goes to descriptor 3, a socket, which first gives the memory for all that follows:
 * proxy/worker/wire.h.
 *
 * This process watches over that of the plugin, and ends it when the application ends. */
#define _GNU_SOURCE
#include "base/platform.h"
#include "base/process.h"
#include "base/text.h"
#include "load/probe.h"
#include "probe/verdict_write.h"
#include "server.h"
#include "watched.h"
#include "worker/late.h"
#include "worker/link.h"
#include "worker/sleep.h"

#include <build_stamp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BAD_USAGE = 2, OTHER_BUILD = 3, NO_MEMORY = 4, NO_READER = 5 };

static const char usage[] =
    "hw-worker has a plugin in a process of its own. The library of hw starts it for the plugins\n"
    "that HW_WORKER names; there is no use in starting it by hand: `hw status` shows it.\n";

enum { MORE_ROOM = 1 << 20 }; /* bytes; the system makes of it what it allows */

static struct wire *shared;
static struct server server;

/* ---- in the process of the plugin ---- */

/* Like the library's, with an account that both share. The library knows the rest. */
static int32_t count_memory(void *instance, void *device, int64_t bytes)
{
    const uint64_t limit = server.plugin->host.memory_limit;
    uint32_t i = 0;
    (void)instance;
    while (i < WIRE_DEVICES && (!device || server.device[i] != device))
        i++;
    if (i == WIRE_DEVICES)
        return server.plugin->host.fail(instance, HW_INVALID,
                                        "count_memory: this device is not open");
    const int64_t counted = atomic_fetch_add(&shared->memory[i].counted, bytes) + bytes;
    const int64_t all = atomic_load(&shared->memory[i].allocated) + counted;
    if (bytes <= 0 || !limit || (all >= 0 && (uint64_t)all <= limit))
        return HW_OK;
    char text[256];
    atomic_fetch_sub(&shared->memory[i].counted, bytes);
    snprintf(
        text, sizeof text,
        "%s requested; the limit is %s, of which %s are allocated (HW_MEMORY_LIMIT sets "
        "it)",
        size_text((uint64_t)bytes).text, size_text(limit).text,
        size_text((uint64_t)(all - bytes)).text);
    return server.plugin->host.fail(instance, HW_NO_MEMORY, text);
}

/* The table's numbers; the rest is in the verdict. */
static void describe(void)
{
    const struct hw_plugin *table = server.table;
    struct wire_table *to = &shared->table;
    snprintf(to->vendor, sizeof to->vendor, "%s", table->vendor);
    snprintf(to->version, sizeof to->version, "%s", table->version);
    to->abi = table->abi;
    to->ops = server.subject.verdict->ops;
    to->device_count = server.subject.verdict->device_count;
    to->op_count = table->op_count < HW_OP_COUNT ? table->op_count : HW_OP_COUNT;
    for (uint32_t op = 0; op < to->op_count; op++)
        to->op_sizes[op] = table->op_sizes[op];
    shared->process = getpid();
}

static void begin_server(const struct plugin *plugin)
{
    server.wire = shared;
    server.plugin = (struct plugin *)(uintptr_t)plugin;
    server.table = &plugin->table;
    server.plugin->host.count_memory = count_memory;
    pthread_mutex_init(&server.memories.lock, NULL);
    pthread_mutex_init(&server.events.lock, NULL);
    pthread_mutex_init(&server.graphs.lock, NULL);
    describe();
}

static void start_plugin(const struct request *request, struct progress *progress,
                         struct verdict *verdict)
{
    struct subject *subject = &server.subject;
    subject_begin(subject, request, progress, verdict);
    server.wire = shared;
    subject->context.log.fn = say_line;
    subject->context.log.user = &server;
    if (subject_find(subject) && subject_start(subject)) {
        begin_server(subject->candidate->plugin);
        if (!events_start(&server))
            stop(subject->candidate, REASON_NO_MEMORY, NULL);
    }
    subject_reason(subject);
}

__attribute__((noreturn)) static void serve(const struct request *request,
                                            struct progress *progress)
{
    struct verdict verdict = { 0 };
    unsigned char *bytes;
    size_t size;
    close_from(SERVER_SOCKET + 1);
    plain_signals();
    limit_core();
    start_plugin(request, progress, &verdict);
    subject_say(&server.subject, "while it served");
    if (!verdict_encode(&verdict, &bytes, &size) || !reply(bytes, size))
        _exit(BAD_END);
    free(bytes);
    if (verdict.reason)
        _exit(0);
    close(PROCESS_ANSWER);
    control_run(&server);
}

/* ---- the start ---- */

static bool is_whole(const struct watched *watched)
{
    struct verdict verdict;
    const bool good = verdict_decode(&verdict, watched->bytes, watched->size);
    if (good)
        verdict_free(&verdict);
    return good;
}

/* Sends what the plugin's process, or this one, says about the start. False if it is not a good
 * one. */
static bool answer(struct watched *watched)
{
    unsigned char *bytes = watched->bytes;
    size_t size = watched->size;
    struct verdict verdict;
    const bool whole = is_whole(watched);
    bool good = false;
    if (whole && verdict_decode(&verdict, bytes, size)) {
        good = !verdict.reason;
        verdict_free(&verdict);
    }
    if (!good)
        watched_kill(watched);
    if (!whole && !reply_in_its_place(watched, REASON_NONE, &bytes, &size))
        return false;
    atomic_store(&shared->reply,
                 (uint32_t)size); /* before the library sees the last byte */
    good = reply(bytes + sizeof verdict_magic, size - sizeof verdict_magic) && good;
    free(bytes);
    watched->bytes = NULL;
    return good;
}

/* ---- watching ---- */

/* The thread of the application that has started this program may end before the application: so
 * its process is watched, not the thread. */
static int open_parent(void)
{
#if defined(SYS_pidfd_open)
    return (int)syscall(SYS_pidfd_open, getppid(), 0);
#else
    return -1;
#endif
}

static const char *look(struct late *late, struct stopwatch *stopwatch)
{
    if (!late_is_due(late))
        return NULL;
    const uint64_t before = stopwatch->passed;
    stopwatch_look(stopwatch);
    return late_look(late, stopwatch->passed > before ? stopwatch->passed - before : 0);
}

/* Until the plugin's process or the application ends, the library hangs up, or a call takes too
 * long: then it returns why the plugin's is stopped. */
static const char *watch_over(struct watched *watched, int parent, pid_t parent_id,
                              const struct late_limits *limits)
{
    struct pollfd polled[] = { { .fd = watched->output, .events = POLLIN },
                               { .fd = PROCESS_ANSWER },
                               { .fd = parent, .events = POLLIN } };
    static struct late late;
    struct stopwatch stopwatch;
    const char *why = NULL;
    sigset_t none;
    sigemptyset(&none);
    late_begin(&late, shared, limits);
    stopwatch_start(&stopwatch, watched->id);
    const struct timespec period = { .tv_sec = (time_t)(late.period / 1000000),
                                     .tv_nsec = (long)(late.period % 1000000) * 1000 };
    while (!has_ended(watched) && !(why = look(&late, &stopwatch))) {
        ppoll(polled, 3, &period, &none);
        take_output(watched);
        if (polled[1].revents & (POLLHUP | POLLERR) || polled[2].revents ||
            getppid() != parent_id)
            return NULL;
        if (polled[0].revents & (POLLHUP | POLLERR) && !(polled[0].revents & POLLIN))
            polled[0].fd = -1;
    }
    watched->ended = !why;
    return why;
}

/* `late`: why it was stopped, if it was. */
static char *words_of_end(struct watched *watched, const char *late)
{
    const int status = watched->status;
    char *words;
    if (late)
        words = text_format("it was stopped, because %s", late);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        words = text_format("it was killed (signal 9), by somebody or for lack of memory");
    else if (WIFSIGNALED(status))
        words = text_format("it crashed: %s (signal %d)", signal_words(WTERMSIG(status)),
                            WTERMSIG(status));
    else if (WEXITSTATUS(status) == LOST_REPLY)
        words = text_format("the plugin has closed files of its process");
    else
        words = text_format("it ended with status %d", WEXITSTATUS(status));
    return with_output(words, watched);
}

/* The library may sleep on any of the channels. */
static void wake_library(void)
{
    atomic_store(&shared->ended, 1);
    for (uint32_t i = 0; i < WIRE_CHANNELS; i++)
        if (atomic_load(&shared->channel[i].host_sleeps))
            wake_all(&shared->channel[i].head);
}

static void tell_end(char *words)
{
    struct wire_packet packet = { .level = 0 };
    snprintf(packet.text, sizeof packet.text, "%s", words ? words : "");
    free(words);
    /* Lines of the log that the library has not read may fill the buffer: there is room for this
     * packet beyond them. If the library does not take it, the end of the connection tells it. */
    const int room = MORE_ROOM;
    (void)setsockopt(PROCESS_ANSWER, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    (void)!send(PROCESS_ANSWER, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(PROCESS_ANSWER, SHUT_WR);
    wake_library();
}

static int run(const struct request *request)
{
    struct watched watched;
    unsigned char *bytes;
    size_t size;
    const pid_t parent_id = getppid();
    const int parent = open_parent();
    if (!watched_prepare(&watched, request) || !watched_start(&watched, request, serve)) {
        if (reply_without_it(ENOMEM, &bytes, &size))
            (void)!reply(bytes + sizeof verdict_magic, size - sizeof verdict_magic);
        return NO_MEMORY;
    }
    watched_wait(&watched, is_whole);
    if (!answer(&watched))
        return 0;
    const struct late_limits limits = { request->call_seconds,
                                        request->settings.probe_timeout };
    const char *late = watch_over(&watched, parent, parent_id, &limits);
    watched_kill(&watched);
    take_output(&watched);
    tell_end(words_of_end(&watched, late));
    return 0;
}

/* Sets the memory that the library has made. */
static bool take_memory(void)
{
    const int file = link_receive_file(PROCESS_ANSWER);
    shared = file >= 0 ? link_map(file, sizeof *shared) : NULL;
    if (file >= 0)
        close(file);
    return shared != NULL;
}

int main(int count, char **arguments)
{
    struct request request;
    if (count < PROBE_SETTINGS) {
        fputs(usage, stderr);
        return BAD_USAGE;
    }
    if (strcmp(arguments[PROBE_STAMP], HW_BUILD_STAMP) != 0) {
        (void)!reply(probe_other, sizeof probe_other);
        return OTHER_BUILD;
    }
    helper_settle();
    if (!request_read(&request, count, arguments))
        return BAD_USAGE;
    if (!take_memory() ||
        fcntl(PROCESS_ANSWER, F_DUPFD_CLOEXEC, SERVER_SOCKET) != SERVER_SOCKET)
        return NO_MEMORY;
    /* The beginning is sent at once: a helper that cannot run is another thing than one that a
     * plugin has ended. */
    if (!reply(verdict_magic, sizeof verdict_magic))
        return NO_READER;
    return run(&request);
}
