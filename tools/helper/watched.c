/* SPDX-License-Identifier: MIT */
/* watched.c - watches over the process of a plugin. It has a process group of its own, and its
 * orphans become children of this process: so all of them are found, and killed. */
#define _GNU_SOURCE
#include "watched.h"

#include "base/platform.h"
#include "base/process.h"
#include "base/text.h"
#include "load/probe.h"
#include "probe/verdict_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum {
    LOOK = 50000000,    /* nanoseconds from one look at the process to the next */
    PATIENCE = 20000,   /* microseconds for what it prints at a time */
    ENDLESS = 256 << 10 /* bytes of output, from which on there is no end of it */
};

/* ---- in the worker ---- */

void limit_core(void)
{
    const struct rlimit core = { 1, 1 };
    setrlimit(RLIMIT_CORE, &core);
}

void limit_memory(void)
{
#if defined(__linux__)
    unsigned long own = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    const bool known = file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &own) == 1;
    if (file)
        fclose(file);
    const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
    if (!known || page <= 0 || pages <= 0)
        return;
    const rlim_t bytes = ((rlim_t)own + (rlim_t)pages / 2) * (rlim_t)page;
    struct rlimit data;
    if (getrlimit(RLIMIT_DATA, &data) || data.rlim_cur <= bytes)
        return;
    data.rlim_cur = bytes;
    setrlimit(RLIMIT_DATA, &data);
#endif
}

void plain_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- starting it ---- */

static void become_worker(int reply, int output)
{
    setpgid(0, 0);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    dup2(output, 1);
    dup2(output, 2);
    dup2(reply, PROCESS_ANSWER);
}

/* Above the descriptors that are replaced. */
static bool make_pipe(int ends[2])
{
    int low[2];
    if (pipe(low))
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, PROCESS_ANSWER + 1);
        close(low[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0 && !fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

bool watched_start(struct watched *watched, const struct request *request, watched_fn *work)
{
    int answer[2], output[2];
    if (!make_pipe(answer) || !make_pipe(output))
        return false;
    watched->reply = answer[0];
    watched->output = output[0];
    if ((watched->id = fork()) == 0) {
        become_worker(answer[1], output[1]);
        work(request, watched->progress);
    }
    const int error = errno;
    close(answer[1]);
    close(output[1]);
    errno = error;
    if (watched->id > 0)
        stopwatch_start(&watched->stopwatch, watched->id);
    return watched->id > 0;
}

/* ---- waiting for it ---- */

static void take_reply(struct watched *watched)
{
    unsigned char part[4096];
    ssize_t got;
    while ((got = read(watched->reply, part, sizeof part)) > 0) {
        /* More than a verdict can have makes no sense; the rest is not kept. */
        if (watched->size > VERDICT_BYTES || watched->no_memory)
            continue;
        unsigned char *bytes = realloc(watched->bytes, watched->size + (size_t)got);
        if ((watched->no_memory = !bytes))
            continue;
        memcpy(bytes + watched->size, part, (size_t)got);
        watched->bytes = bytes;
        watched->size += (size_t)got;
    }
}

void take_output(struct watched *watched)
{
    const uint64_t begun = microseconds_now();
    char part[4096];
    ssize_t got;
    while ((got = read(watched->output, part, sizeof part)) > 0) {
        const size_t more = (size_t)got < TAIL ? (size_t)got : TAIL;
        watched->printed += (uint64_t)got;
        const size_t room = TAIL - more;
        const size_t kept = watched->tail_size < room ? watched->tail_size : room;
        memmove(watched->tail, watched->tail + watched->tail_size - kept, kept);
        memcpy(watched->tail + kept, part + got - more, more);
        watched->tail_size = kept + more;
        if (microseconds_now() - begun >= PATIENCE)
            return; /* it prints without end */
    }
}

static void on_child(int number)
{
    (void)number; /* ends ppoll() */
}

bool has_ended(const struct watched *watched)
{
    siginfo_t info = { 0 };
    return !waitid(P_PID, (id_t)watched->id, &info, WEXITED | WNOHANG | WNOWAIT) &&
           info.si_pid == watched->id;
}

static bool is_stopped(const struct watched *watched)
{
    siginfo_t info = { 0 };
    return !waitid(P_PID, (id_t)watched->id, &info, WSTOPPED | WNOHANG | WNOWAIT) &&
           info.si_pid == watched->id;
}

static bool is_case(uint32_t step)
{
    return step % 2;
}

static unsigned limit_of_step(const struct watched *watched)
{
    return watched->seconds * (is_case(watched->step) ? watched->case_times : 1);
}

/* The time in which a case began or ended, between two looks, counts for neither. */
static bool is_late(struct watched *watched)
{
    struct stopwatch *stopwatch = &watched->stopwatch;
    const uint32_t step = atomic_load(&watched->progress->step);
    if (step == watched->step) {
        stopwatch_look(stopwatch);
    } else {
        watched->rest += is_case(watched->step) ? 0 : stopwatch->passed;
        watched->step = step;
        stopwatch_start(stopwatch, watched->id);
    }
    return stopwatch->passed + (is_case(step) ? 0 : watched->rest) >=
           limit_of_step(watched) * UINT64_C(1000000);
}

void watched_wait(struct watched *watched, watched_done *done)
{
    struct pollfd polled[] = { { .fd = watched->reply, .events = POLLIN },
                               { .fd = watched->output, .events = POLLIN } };
    const struct timespec period = { .tv_nsec = LOOK };
    sigset_t none;
    sigemptyset(&none);
    while (!watched->ended && !(done && done(watched))) {
        watched->ended = has_ended(watched);
        if (!watched->ended && (watched->late = is_late(watched))) {
            watched->stopped = is_stopped(watched);
            return;
        }
        if (!watched->ended)
            ppoll(polled, 2, &period, &none);
        take_reply(watched);
        take_output(watched);
        for (int i = 0; i < 2; i++)
            if (polled[i].revents & (POLLHUP | POLLERR) && !(polled[i].revents & POLLIN))
                polled[i].fd = -1; /* closed: only the end of the process is awaited */
    }
}

/* ---- after it ---- */

/* Whether the process is a child of this one. */
static bool is_child(const char *process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", process);
    FILE *file = fopen(path, "re");
    const size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[size] = '\0';
    const char *name_end = strrchr(text, ')');
    int parent = 0;
    return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 && parent == getpid();
}

static void kill_children(void)
{
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));)
        if (entry->d_name[0] > '0' && entry->d_name[0] <= '9' && is_child(entry->d_name))
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    if (all)
        closedir(all);
}

/* Orphans of those that are killed become children as well, so this takes a few rounds. */
void watched_kill(struct watched *watched)
{
    kill(-watched->id, SIGKILL);
    kill(watched->id, SIGKILL); /* it may have left its group */
    for (int round = 0; round < 200 && !has_ended(watched); round++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (has_ended(watched))
        waitpid(watched->id, &watched->status, 0);
    for (int round = 0; round < 200; round++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0)
            return; /* there are none */
        if (round)
            kill_children();
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

void watched_close(struct watched *watched)
{
    take_reply(watched);
    close(watched->reply);
    close(watched->output);
}

/* ---- the verdict on what happened ---- */

#define ALWAYS(NAME)                                                                       \
    {                                                                                      \
        REASON_##NAME, REASON_##NAME, REASON_##NAME                                        \
    }
static const struct end {
    int signal;
    const char *words;
    enum reason reasons[PHASE_COUNT];
} ends[] = {
    { SIGSEGV, "segmentation fault", { REASON_CRASH, REASON_DEVICE_CRASH, REASON_CRASH } },
    { SIGBUS, "bus error", ALWAYS(BUS_ERROR) },
    { SIGILL, "illegal instruction", ALWAYS(BAD_INSTRUCTION) },
    { SIGTRAP, "trap", ALWAYS(BAD_INSTRUCTION) },
    { SIGFPE, "arithmetic exception", ALWAYS(CRASH) },
    { SIGABRT, "abort", ALWAYS(ABORT) },
    { SIGKILL, "killed, probably for lack of memory", ALWAYS(KILLED) },
    { 0, NULL, ALWAYS(KILLED) }, /* the others come from outside, or from raise() */
};
#undef ALWAYS

static const struct end *end_by(int number)
{
    const struct end *end = ends;
    while (end->signal && end->signal != number)
        end++;
    return end;
}

const char *signal_words(int number)
{
    const struct end *end = end_by(number);
    return end->words ? end->words : strsignal(number);
}

/* Memory that the plugin can write is not trusted. */
static enum phase phase_of(const struct watched *watched)
{
    const uint32_t phase = watched->progress->phase;
    return phase < PHASE_COUNT ? (enum phase)phase : PHASE_START;
}

static enum reason reason_of_hang(const struct watched *watched)
{
    return phase_of(watched) == PHASE_DEVICE && !watched->stopped &&
                   watched->printed <= ENDLESS
               ? REASON_DEVICE_HANG
               : REASON_HANG;
}

/* Makes a text of what is kept of its output, without the end of the line. */
static void end_output(struct watched *watched)
{
    while (watched->tail_size && strchr("\r\n ", watched->tail[watched->tail_size - 1]))
        watched->tail_size--;
    watched->tail[watched->tail_size] = '\0';
    for (size_t i = 0; i < watched->tail_size; i++)
        if (!watched->tail[i])
            watched->tail[i] = ' ';
}

/* Only words tell that from other ways to give up. */
static bool says_memory(const struct watched *watched)
{
    static const char *const words[] = { "out of memory", "bad_alloc", "cannot allocate" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(watched->tail, words[i]))
            return true;
    return false;
}

/* A verdict, and the beginning of another one. */
static bool has_two_replies(const struct watched *watched)
{
    struct verdict verdict;
    uint64_t first;
    if (watched->size < VERDICT_FRAME)
        return false;
    memcpy(&first, watched->bytes + sizeof verdict_magic, sizeof first);
    if (first < VERDICT_FRAME || first > watched->size - sizeof verdict_magic ||
        memcmp(watched->bytes + first, verdict_magic, sizeof verdict_magic) != 0 ||
        !verdict_decode(&verdict, watched->bytes, (size_t)first))
        return false;
    verdict_free(&verdict);
    return true;
}

static char *message_of_end(const struct watched *watched, enum reason *reason)
{
    const unsigned seconds = limit_of_step(watched);
    char times[32] = "";
    if (seconds != watched->seconds)
        snprintf(times, sizeof times, "%u times ", (unsigned)watched->case_times);
    const char *when = watched->progress->text;
    const int status = watched->status;
    *reason = reason_of_hang(watched);
    if (watched->late)
        return text_format("it did not come to an end within %u second%s "
                           "(%sHW_PROBE_TIMEOUT), %s%s",
                           seconds, seconds == 1 ? "" : "s", times, when,
                           watched->stopped ? "; it had stopped itself" : "");
    if (WIFSIGNALED(status)) {
        *reason = end_by(WTERMSIG(status))->reasons[phase_of(watched)];
        if (*reason == REASON_ABORT && says_memory(watched))
            *reason = REASON_MEMORY_LIMIT;
        return text_format("it crashed %s: %s (signal %d)", when,
                           signal_words(WTERMSIG(status)), WTERMSIG(status));
    }
    *reason = REASON_NO_MEMORY;
    if (WEXITSTATUS(status) == BAD_END || watched->no_memory)
        return text_format("memory ran out, %s", when);
    *reason = REASON_DEVICE_FAILED;
    if (WEXITSTATUS(status) == DEVICE_LOST)
        return text_format("the device was lost, %s", when);
    *reason = REASON_CHANGED_FILES;
    if (WEXITSTATUS(status) == LOST_REPLY)
        return text_format("it closed or replaced open files of the process, %s", when);
    *reason = REASON_BAD_REPLY;
    if (has_two_replies(watched))
        return text_format("it forked during the probe, and both processes replied");
    *reason = REASON_BAD_REPLY;
    if (watched->size)
        return text_format("it wrote into the probe's reply, %s", when);
    *reason = REASON_EXIT;
    return text_format("it ended the process with status %d, %s", WEXITSTATUS(status),
                       when);
}

/* Its last output says more than a signal. */
char *with_output(char *message, struct watched *watched)
{
    end_output(watched);
    if (!message || !*watched->tail)
        return message;
    char *longer = text_format("%s. Its last output: %s", message, watched->tail);
    free(message);
    return longer;
}

bool watched_is_good(struct watched *watched)
{
    struct verdict verdict;
    if (!watched->ended || watched->status || watched->no_memory)
        return false;
    if (!verdict_decode(&verdict, watched->bytes, watched->size)) {
        watched->no_memory = errno == ENOMEM;
        return false;
    }
    verdict_free(&verdict);
    return true;
}

char *why_it_ended(struct watched *watched, enum reason *reason)
{
    watched->progress->text[sizeof watched->progress->text - 1] = '\0';
    end_output(watched);
    return with_output(message_of_end(watched, reason), watched);
}

/* Memory that the plugin can write is not trusted: the library checks each line. If the process has
 * ended before it was known on which files the verdict depends, the verdict is not kept. */
static void take_depends(struct progress *progress, struct verdict *verdict)
{
    progress->depends[sizeof progress->depends - 1] = '\0';
    verdict->depends = progress->examined ? strdup(progress->depends) : NULL;
    verdict->locked = progress->locked;
}

bool reply_in_its_place(struct watched *watched, enum reason instead, unsigned char **bytes,
                        size_t *size)
{
    struct verdict verdict = { 0 };
    verdict.message = why_it_ended(watched, &verdict.reason);
    verdict.reason = instead ? instead : verdict.reason;
    take_depends(watched->progress, &verdict);
    free(watched->bytes);
    watched->bytes = NULL;
    const bool good = verdict_encode(&verdict, bytes, size);
    verdict_free(&verdict);
    return good;
}

bool reply_without_it(int error, unsigned char **bytes, size_t *size)
{
    struct verdict verdict = { .reason = REASON_NO_MEMORY };
    verdict.message = text_format("hw-probe cannot start a process: %s", strerror(error));
    const bool good = verdict_encode(&verdict, bytes, size);
    verdict_free(&verdict);
    return good;
}

bool watched_prepare(struct watched *watched, const struct request *request)
{
    struct sigaction action = { .sa_handler = on_child };
    sigset_t child;
    void *shared = mmap(NULL, sizeof *watched->progress, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    sigaction(SIGCHLD, &action, NULL);
    *watched = (struct watched){ .progress = shared,
                                 .seconds = request->settings.probe_timeout,
                                 .case_times = request->patient ? CASE_TIMES : 1 };
    return shared != MAP_FAILED;
}
