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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAST_PATIENCE 1000000 /* microseconds until a killed process must have ended */

/* Moves a descriptor above those that the helper uses. It is low if the application has closed
 * standard descriptors. */
static int move_up(int fd)
{
    if (fd < 0 || fd > PROCESS_ANSWER)
        return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, PROCESS_ANSWER + 1);
    close(fd);
    return moved;
}

static bool make_ends(int ends[2], bool socket)
{
    if (socket ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)
               : pipe2(ends, O_CLOEXEC))
        return false;
    ends[0] = move_up(ends[0]);
    ends[1] = move_up(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    const int error = errno;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    errno = error;
    return false;
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

/* Opens a pidfd: unlike a number, it cannot come to mean another process. */
static int open_handle(pid_t id)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    return (int)syscall(SYS_pidfd_open, id, 0); /* close-on-exec */
#else
    (void)id;
    return -1;
#endif
}

static int start(struct process *process, char *const arguments[], bool socket)
{
    int ends[2];
    *process = none;
    if (!make_ends(ends, socket))
        return errno;
    int error = fcntl(ends[0], F_SETFL, O_NONBLOCK) ? errno : 0;
    if (!error)
        error = spawn(process, arguments, ends[1]);
    close(ends[1]);
    if (error)
        close(ends[0]);
    else
        process->answer = ends[0];
    if (!error && socket)
        process->handle = open_handle((pid_t)process->id);
    return error;
}

int process_start(struct process *process, char *const arguments[])
{
    return start(process, arguments, false);
}

int process_start_socket(struct process *process, char *const arguments[])
{
    return start(process, arguments, true);
}

/* ---- files ---- */

/* Room for one descriptor that accompanies a packet. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool process_send_file(const struct process *process, int file)
{
    char byte = 0;
    struct iovec data = { &byte, 1 };
    union control control = { .bytes = { 0 } };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    ssize_t sent;
    do
        sent = sendmsg(process->answer, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == 1;
}

int process_receive_file(int socket)
{
    char byte;
    struct iovec data = { &byte, 1 };
    union control control = { .bytes = { 0 } };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t got;
    int file = -1;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *head = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof file))
        memcpy(&file, CMSG_DATA(head), sizeof file);
    else if (got >= 0)
        errno = got && message.msg_flags & MSG_CTRUNC ? EMFILE : EPIPE;
    return file;
}

void process_hang_up(const struct process *process)
{
    shutdown(process->answer, SHUT_RDWR);
}

void process_resume(const struct process *process)
{
#if defined(SYS_pidfd_send_signal)
    if (process->handle >= 0)
        (void)syscall(SYS_pidfd_send_signal, process->handle, SIGCONT, NULL, 0);
#else
    (void)process;
#endif
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

/* ---- memory ---- */

static void *map(int file, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* A larger file would end the process with SIGXFSZ, unless the application handles that. */
static bool may_be_as_large(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

void *process_share(size_t bytes, int *file)
{
#if defined(__linux__)
    *file = -1;
    if (!may_be_as_large(bytes))
        return NULL;
    const int made = move_up(memfd_create("hw", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    void *memory = made >= 0 && !ftruncate(made, (off_t)bytes) &&
                           !fcntl(made, F_ADD_SEALS,
                                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
                       ? map(made, bytes)
                       : NULL;
    if (!memory && made >= 0)
        close(made);
    *file = memory ? made : -1;
    return memory;
#else
    (void)bytes;
    *file = -1;
    return NULL;
#endif
}

void *process_map(int file, size_t bytes)
{
    struct stat is;
    return !fstat(file, &is) && is.st_size >= 0 && (uint64_t)is.st_size >= bytes
               ? map(file, bytes)
               : NULL;
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
