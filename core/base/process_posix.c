/* SPDX-License-Identifier: MIT */
/* process_posix.c - starts helper programs with posix_spawn(), which copies none of the
 * application's memory and runs no handler of pthread_atfork(). */
#define _GNU_SOURCE
#include "base/process.h"

#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAST_PATIENCE 1000000 /* microseconds until a killed process must have ended */

int process_move_up(int fd)
{
    if (fd < 0 || fd > PROCESS_ANSWER)
        return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, PROCESS_ANSWER + 1);
    close(fd);
    return moved;
}

static int set_files(posix_spawn_file_actions_t *files, int answer)
{
    int error = 0;
    for (int fd = 0; fd < PROCESS_ANSWER && !error; fd++)
        error = posix_spawn_file_actions_addopen(files, fd, "/dev/null",
                                                 fd ? O_WRONLY : O_RDONLY, 0);
    return error ? error : posix_spawn_file_actions_adddup2(files, answer, PROCESS_ANSWER);
}

/* The process gets a group of its own. No signal is blocked or ignored. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error)
        error = posix_spawnattr_setpgroup(attributes, 0);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setsigdefault(attributes, &all);
}

static int spawn(struct process *process, char *const arguments[], int answer)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    pid_t id;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    if (!(error = posix_spawnattr_init(&attributes))) {
        error = set_files(&files, answer);
        if (!error)
            error = set_attributes(&attributes);
        if (!error)
            error = posix_spawn(&id, arguments[0], &files, &attributes, arguments, environ);
        if (!error)
            process->id = id;
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static const struct process none = { .answer = -1, .handle = -1 };

int process_start_with(struct process *process, char *const arguments[], int ends[2])
{
    *process = none;
    for (int i = 0; i < 2; i++)
        ends[i] = process_move_up(ends[i]);
    int error = ends[0] < 0 || ends[1] < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) ? errno
                                                                                  : 0;
    if (!error)
        error = spawn(process, arguments, ends[1]);
    if (ends[1] >= 0)
        close(ends[1]);
    if (error && ends[0] >= 0)
        close(ends[0]);
    if (!error)
        process->answer = ends[0];
    return error;
}

int process_start(struct process *process, char *const arguments[])
{
    int ends[2];
    *process = none;
    return pipe2(ends, O_CLOEXEC) ? errno : process_start_with(process, arguments, ends);
}

/* Reads /proc, because the system notifies only the parent, and only once. The process name, which
 * precedes the state, may contain anything. */
char process_state(int64_t id)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)id);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    const char *name_end = got > 0 ? strrchr(text, ')') : NULL;
    return name_end && name_end[1] == ' ' ? name_end[2] : 0;
}

/* ---- waiting ---- */

void process_wait(const struct process *const list[], size_t count, uint64_t microseconds)
{
    const uint64_t milliseconds = microseconds / 1000 + 1;
    struct pollfd *polled = calloc(count + 1, sizeof *polled);
    for (size_t i = 0; i < count && polled; i++)
        polled[i] = (struct pollfd){ .fd = list[i]->answer, .events = POLLIN };
    /* Without memory it waits only for a millisecond; the caller then tries again. */
    poll(polled, polled ? (nfds_t)count : 0,
         !polled ? 1 : (int)(milliseconds < 60000 ? milliseconds : 60000));
    free(polled);
}

ptrdiff_t process_read(const struct process *process, void *to, size_t size)
{
    ssize_t got;
    /* ECONNRESET, which comes once, says that the helper has not read everything; its packets
     * follow. */
    do
        got = read(process->answer, to, size);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    return got;
}

enum { BY_HANDLE = 3 }; /* P_PIDFD, which older headers lack */

/* Whether the process has ended. If so, it has been reaped. */
static bool has_ended(const struct process *process)
{
    siginfo_t info = { .si_pid = 0 };
    int failed;
    do
        failed = process->handle >= 0 ? waitid((idtype_t)BY_HANDLE, (id_t)process->handle,
                                               &info, WEXITED | WNOHANG)
                                      : -1;
    while (failed && process->handle >= 0 && errno == EINTR);
    if (process->handle >= 0 && (!failed || errno == ECHILD))
        return failed || info.si_pid;
    pid_t ended; /* there is no pidfd, or the system cannot wait for it */
    do
        ended = waitpid((pid_t)process->id, NULL, WNOHANG);
    while (ended < 0 && errno == EINTR);
    return ended != 0;
}

/* The process has just been seen running, so its number and group still belong to it. */
static void kill_all(const struct process *process)
{
    const pid_t id = (pid_t)process->id;
    kill(-id, SIGKILL);
    /* The process may have left its group. */
#if defined(SYS_pidfd_send_signal)
    if (process->handle >= 0 &&
        !syscall(SYS_pidfd_send_signal, process->handle, SIGKILL, NULL, 0))
        return;
#endif
    kill(id, SIGKILL);
}

static void pause_for(uint64_t microseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)microseconds * 1000 }, NULL);
}

/* The system does not reuse the number of a process that was not waited for, so the signal reaches
 * the right process. But the application may reap the process. A long-lived process therefore has a
 * pidfd; for a short-lived one, reuse of the number in that time is unlikely. */
bool process_end(struct process *process, uint64_t patience)
{
    const uint64_t start = microseconds_now();
    bool killed = false, ended;
    uint64_t step = 50;
    while (!(ended = has_ended(process))) {
        const uint64_t waited = microseconds_now() - start;
        if (!killed && waited >= patience) {
            kill_all(process);
            killed = true;
        } else if (killed && waited >= patience + LAST_PATIENCE) {
            break;
        }
        pause_for(step);
        step = step < 5000 ? 2 * step : step;
    }
    close(process->answer);
    if (process->handle >= 0)
        close(process->handle);
    *process = none;
    return ended;
}
