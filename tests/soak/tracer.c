/* SPDX-License-Identifier: MIT */
/* tracer.c - see tracer.h. */
#define _GNU_SOURCE
#include "tracer.h"

#include "soak.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG 60 /* seconds after which a run counts as hanging */

#if defined(__linux__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) &&         \
    !defined(__SANITIZE_THREAD__)
#include <linux/futex.h>
#include <linux/ptrace.h>
#include <sys/user.h>

/* ---- system calls that can fail, and their errors ---- */

#define CALL(name, shorten, ...)                                                           \
    {                                                                                      \
#name, SYS_##name, shorten, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int),          \
        {                                                                                  \
            __VA_ARGS__                                                                    \
        }                                                                                  \
    }

static const struct faulty known[] = {
    CALL(access, false, EACCES, EINTR, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR),
    CALL(clone, false, EAGAIN, ENOMEM, EPERM),
    CALL(clone3, false, EAGAIN, ENOMEM, ENOSYS, EPERM),
    CALL(close, false, EDQUOT, EINTR, EIO, ENOSPC),
    CALL(close_range, false, ENOMEM, ENOSYS),
    CALL(dup2, false, EBUSY, EINTR, EMFILE),
    CALL(execve, false, E2BIG, EACCES, EINVAL, EIO, EMFILE, ENOENT, ENOEXEC, ENOMEM,
         ETXTBSY),
    CALL(faccessat2, false, EACCES, ENOENT, ENOMEM, ENOSYS),
    CALL(fcntl, false, EINTR, EINVAL, EMFILE, EPERM),
    CALL(flock, false, EINTR, ENOLCK, ENOSYS, EOPNOTSUPP, EWOULDBLOCK),
    CALL(fstat, false, EIO, ENOMEM, EOVERFLOW),
    CALL(ftruncate, false, EFBIG, EINTR, EINVAL, EIO, EPERM),
    CALL(futex, false, EAGAIN, EINTR),
    CALL(getcwd, false, ENOENT, ENOMEM),
    CALL(getdents64, false, EINTR, EIO),
    CALL(getgroups, false, EINVAL, EFAULT),
    CALL(getrandom, false, EAGAIN, EINTR, ENOSYS),
    CALL(getxattr, false, ENODATA, ENOTSUP, EIO),
    CALL(kill, false, EPERM, ESRCH),
    CALL(lgetxattr, false, E2BIG, EACCES, EIO, ENODATA, ENOENT, ENOTSUP, ERANGE),
    CALL(lseek, false, EINVAL, ESPIPE),
    CALL(lstat, false, EACCES, EINTR, EIO, ELOOP, ENOENT, ENOMEM, ENOTDIR),
    CALL(madvise, false, EAGAIN, EINVAL, ENOMEM),
    CALL(memfd_create, false, EMFILE, ENFILE, ENOMEM, ENOSYS),
    CALL(mkdir, false, EACCES, EEXIST, EIO, EINTR, ENOENT, ENOSPC, EROFS),
    CALL(mkdirat, false, EACCES, EEXIST, EIO, EINTR, ENOENT, ENOSPC, EROFS),
    CALL(mmap, false, EACCES, EAGAIN, ENFILE, ENODEV, ENOMEM, EPERM),
    CALL(mprotect, false, EACCES, ENOMEM),
    CALL(munmap, false, EINVAL, ENOMEM),
    CALL(nanosleep, false, EINTR),
    CALL(clock_nanosleep, false, EINTR),
    CALL(newfstatat, false, EACCES, EINTR, EIO, ELOOP, ENOENT, ENOMEM, ENOTDIR, EOVERFLOW),
    CALL(open, false, EACCES, EINTR, EIO, EMFILE, ENOENT, ENOMEM),
    CALL(openat, false, EACCES, EINTR, EIO, ELOOP, EMFILE, ENAMETOOLONG, ENFILE, ENODEV,
         ENOENT, ENOMEM, ENOTDIR, ENXIO, EPERM, EWOULDBLOCK),
    CALL(pidfd_open, false, EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM, ENOSYS, ESRCH),
    CALL(pipe2, false, EMFILE, ENFILE, ENOMEM),
    CALL(poll, false, EINTR, EINVAL, ENOMEM),
    CALL(ppoll, false, EINTR, EINVAL, ENOMEM),
    CALL(prctl, false, EACCES, EINVAL, EPERM),
    CALL(pread64, true, EAGAIN, EINTR, EIO, EISDIR, ENXIO),
    CALL(prlimit64, false, EFAULT, EPERM),
    CALL(read, true, EAGAIN, EINTR, EIO, EISDIR),
    CALL(readlink, false, EACCES, EIO, ELOOP, ENOENT, ENOMEM, ENOTDIR),
    CALL(readlinkat, false, EACCES, EINVAL, EIO, ELOOP, ENOENT, ENOMEM, ENOTDIR),
    CALL(recvmsg, false, ECONNRESET, EINTR, ENOMEM),
    CALL(rename, false, EACCES, EIO, ENOENT, ENOSPC, EROFS, EXDEV),
    CALL(renameat, false, EACCES, EBUSY, EIO, ENOENT, ENOMEM, ENOSPC, EROFS, EXDEV),
    CALL(sched_getaffinity, false, EINVAL, ESRCH),
    CALL(sendmsg, false, EAGAIN, ECONNRESET, EINTR, EMSGSIZE, ENOBUFS, ENOMEM, EPIPE,
         ETOOMANYREFS),
    CALL(sendto, false, EAGAIN, ECONNRESET, EINTR, EMSGSIZE, ENOBUFS, ENOMEM, EPIPE),
    CALL(setpgid, false, EACCES, EPERM),
    CALL(setsockopt, false, ENOBUFS, ENOMEM, ENOPROTOOPT),
    CALL(shutdown, false, EINVAL, ENOTCONN),
    CALL(socketpair, false, EAFNOSUPPORT, EMFILE, ENFILE, ENOMEM, EOPNOTSUPP),
    CALL(stat, false, EACCES, EIO, ENOENT, ENOMEM),
    CALL(statx, false, EACCES, EIO, ENOENT, ENOMEM),
    CALL(unlink, false, EACCES, EIO, ENOENT, EROFS),
    CALL(unlinkat, false, EACCES, EBUSY, EIO, ENOENT, ENOMEM, EROFS),
    CALL(vfork, false, EAGAIN, ENOMEM),
    CALL(wait4, false, EINTR, ECHILD),
    CALL(waitid, false, EINTR, ECHILD),
    CALL(write, true, EAGAIN, EDQUOT, EFBIG, EINTR, EIO, ENOSPC, EPIPE),
};

const struct faulty *faults_of(int number)
{
    static const struct faulty none = { .name = "?" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number)
            return &known[i];
    return &none;
}

const char *call_name(int number)
{
    return faults_of(number)->name;
}

/* ---- marks ---- */

/* Marks are system calls without an effect: no signal has this number. */
#define MARK_BEGIN 4242
#define MARK_END   4243

void tracer_submit(void)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
}

void tracer_begin(void)
{
    kill(getpid(), MARK_BEGIN);
}

void tracer_end(void)
{
    kill(getpid(), MARK_END);
}

/* ---- tracing ---- */

struct traced {
    pid_t id;
    enum role role;
    bool failing; /* the call that it is in */
    bool known;   /* who started it */
    bool held;    /* stopped until that is known */
};

struct tracing {
    enum role role; /* whose calls are counted, */
    bool counts;    /* while this is */
    unsigned calls; /* of the failing system call so far */
    struct fault *fault;
    struct census *census;
    struct traced list[64];
    int count;
};

static struct traced *find(struct tracing *tracing, pid_t id)
{
    for (int i = 0; i < tracing->count; i++)
        if (tracing->list[i].id == id)
            return &tracing->list[i];
    if (tracing->count == 64)
        die("too many processes");
    tracing->list[tracing->count] = (struct traced){ .id = id, .role = ROLE_WORKER + 1 };
    return &tracing->list[tracing->count++];
}

/* close() closes the descriptor even if it fails. */
static void skip(pid_t id, int number)
{
    if (number != SYS_close)
        ptrace(PTRACE_POKEUSER, id, offsetof(struct user_regs_struct, orig_rax), -1L);
}

/* Returns -1 for a call that cannot fail: waking never fails, and the C library aborts if it
 * does. */
static int number_of(const struct __ptrace_syscall_info *info)
{
    const bool wakes = info->entry.nr == SYS_futex &&
                       (info->entry.args[1] & (__u64)FUTEX_CMD_MASK) == FUTEX_WAKE;
    return wakes ? -1 : (int)info->entry.nr;
}

static void enter(struct tracing *tracing, struct traced *traced,
                  const struct __ptrace_syscall_info *info)
{
    struct fault *fault = tracing->fault;
    const int number = number_of(info);
    if (number == SYS_kill && traced->role == ROLE_HOST &&
        (info->entry.args[1] == MARK_BEGIN || info->entry.args[1] == MARK_END)) {
        tracing->counts = info->entry.args[1] == MARK_BEGIN;
        return;
    }
    if (!tracing->counts || traced->role != tracing->role)
        return;
    struct census *census = tracing->census;
    if (census && census->count < sizeof census->number / sizeof *census->number)
        census->number[census->count++] = number;
    if (number != fault->number || ++tracing->calls != fault->call)
        return;
    fault->made = true;
    if (fault->shorten) {
        const unsigned long size = (unsigned long)info->entry.args[2];
        ptrace(PTRACE_POKEUSER, traced->id, offsetof(struct user_regs_struct, rdx),
               size > 1 ? size / 2 : size);
        return;
    }
    traced->failing = true;
    skip(traced->id, number);
}

static void leave(const struct tracing *tracing, struct traced *traced)
{
    if (traced->failing)
        ptrace(PTRACE_POKEUSER, traced->id, offsetof(struct user_regs_struct, rax),
               (long)-tracing->fault->error);
    traced->failing = false;
}

/* Children of a ROLE_WORKER process get no faults. */
static void adopt(struct tracing *tracing, const struct traced *parent)
{
    unsigned long child;
    if (ptrace(PTRACE_GETEVENTMSG, parent->id, 0, &child))
        return;
    const enum role role = parent->role + 1;
    struct traced *traced = find(tracing, (pid_t)child);
    traced->role = role;
    traced->known = true;
    if (traced->held)
        ptrace(PTRACE_SYSCALL, traced->id, 0, 0);
    traced->held = false;
}

/* Handles a stop of a process. Returns the signal to deliver. */
static int react(struct tracing *tracing, struct traced *traced, int status)
{
    const int signal_number = WSTOPSIG(status), event = status >> 16;
    if (signal_number == (SIGTRAP | 0x80)) {
        struct __ptrace_syscall_info info;
        if (ptrace(PTRACE_GET_SYSCALL_INFO, traced->id, sizeof info, &info) <= 0)
            return 0;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
            enter(tracing, traced, &info);
        else
            leave(tracing, traced);
        return 0;
    }
    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
        adopt(tracing, traced);
    return event || signal_number == SIGSTOP || signal_number == SIGTRAP ? 0
                                                                         : signal_number;
}

static void on_alarm(int number)
{
    (void)number; /* ends waitpid() */
}

static void kill_all(const struct tracing *tracing)
{
    for (int i = 0; i < tracing->count; i++)
        kill(tracing->list[i].id, SIGKILL);
}

int trace(pid_t id, enum role role, struct fault *fault, struct census *census)
{
    struct tracing tracing = { .role = role, .fault = fault, .census = census };
    struct sigaction action = { .sa_handler = on_alarm };
    int status;
    sigaction(SIGALRM, &action, NULL);
    if (waitpid(id, &status, 0) != id || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, id, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_EXITKILL))
        die("a process cannot be traced");
    struct traced *host = find(&tracing, id);
    host->role = ROLE_HOST;
    host->known = true;
    ptrace(PTRACE_SYSCALL, id, 0, 0);
    alarm(HANG);
    for (;;) {
        const pid_t stopped = waitpid(-1, &status, __WALL);
        if (stopped < 0) {
            kill_all(&tracing);
            fprintf(stderr, "soak: it hangs\n");
            alarm(HANG);
            continue;
        }
        if (WIFSTOPPED(status)) {
            struct traced *traced = find(&tracing, stopped);
            const int deliver = react(&tracing, traced, status);
            traced->held = !traced->known;
            if (traced->known)
                ptrace(PTRACE_SYSCALL, stopped, 0, deliver);
        } else if (stopped == id) {
            break;
        }
    }
    alarm(0);
    return status;
}

bool tracer_works(void)
{
    const pid_t id = fork();
    if (id == 0) {
        pause();
        _exit(0);
    }
    const bool works = id > 0 && !ptrace(PTRACE_SEIZE, id, 0, 0);
    if (id > 0) {
        kill(id, SIGKILL);
        waitpid(id, NULL, 0);
    }
    return works;
}

#else

const struct faulty *faults_of(int number)
{
    static const struct faulty none = { .name = "?" };
    (void)number;
    return &none;
}

const char *call_name(int number)
{
    return faults_of(number)->name;
}

bool tracer_works(void)
{
    return false;
}

void tracer_submit(void)
{
}

void tracer_begin(void)
{
}

void tracer_end(void)
{
}

int trace(pid_t id, enum role role, struct fault *fault, struct census *census)
{
    (void)id, (void)role, (void)fault, (void)census;
    return 1;
}

#endif
