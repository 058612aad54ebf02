/* SPDX-License-Identifier: MIT */
/* link_posix.c - a socket to the worker process, and memory that both share. */
#define _GNU_SOURCE
#include "worker/link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- starting ---- */

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

int link_start(struct process *process, char *const arguments[])
{
    int ends[2];
    *process = (struct process){ .answer = -1, .handle = -1 };
    const int error = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)
                          ? errno
                          : process_start_with(process, arguments, ends);
    if (!error)
        process->handle = open_handle((pid_t)process->id);
    return error;
}

/* ---- files ---- */

/* Room for one descriptor that accompanies a packet. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool link_send_file(const struct process *process, int file)
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

int link_receive_file(int socket)
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

void link_hang_up(const struct process *process)
{
    shutdown(process->answer, SHUT_RDWR);
}

void link_resume(const struct process *process)
{
#if defined(SYS_pidfd_send_signal)
    if (process->handle >= 0)
        (void)syscall(SYS_pidfd_send_signal, process->handle, SIGCONT, NULL, 0);
#else
    (void)process;
#endif
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

void *link_share(size_t bytes, int *file)
{
#if defined(__linux__)
    *file = -1;
    if (!may_be_as_large(bytes))
        return NULL;
    const int made = process_move_up(memfd_create("hw", MFD_CLOEXEC | MFD_ALLOW_SEALING));
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

void *link_map(int file, size_t bytes)
{
    struct stat is;
    return !fstat(file, &is) && is.st_size >= 0 && (uint64_t)is.st_size >= bytes
               ? map(file, bytes)
               : NULL;
}
