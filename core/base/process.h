/* SPDX-License-Identifier: MIT */
/* process.h - a helper program in a process of its own, which answers through a pipe.
 *
 * The helper does not disturb the application: it inherits no signal mask, handlers or descriptors,
 * and no other child is waited for. Its exit status is not used, so anybody may reap it. An
 * application that ignores SIGCHLD, or that waits for any child, works as well. */
#ifndef HW_BASE_PROCESS_H
#define HW_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The helper writes its answer to this descriptor. Lower descriptors are /dev/null; the helper has
 * to close higher ones. */
#define PROCESS_ANSWER 3

struct process {
    int64_t id; /* 0: none */
    int answer;
    /* A pidfd of a process that was started with a socket, where the system has pidfds; else -1. If
     * the application has reaped the process, `id` may belong to another process by now. */
    int handle;
};

/* Starts a program as the leader of a process group. The first argument is its path, the last
 * one NULL. Returns 0 or an error number. */
int process_start(struct process *process, char *const arguments[]);

/* Like process_start(), with a socket instead of the pipe. A socket can also carry descriptors of
 * files. Each answer is a packet: process_read() takes one at a time. */
int process_start_socket(struct process *process, char *const arguments[]);

/* Sends a file to the helper, which takes it with process_receive_file(). False if that would
 * block or fails. */
bool process_send_file(const struct process *process, int file);
/* In the helper: waits for a file and returns its descriptor. Returns -1 if no file will come or,
 * with EMFILE in errno, if this process has no descriptor left. */
int process_receive_file(int socket);
/* Ends the connection, as the end of this process would. */
void process_hang_up(const struct process *process);
/* Resumes the process if somebody has stopped it. Works only with a pidfd. */
void process_resume(const struct process *process);
/* The state of the process with this number, as in ps(1): T if a signal has stopped it, t if a
 * debugger has, Z if it is a zombie; 0 if the system does not say. */
char process_state(int64_t id);
static inline bool process_is_stopped(char state)
{
    return state == 'T' || state == 't';
}

/* Allocates zeroed memory that can be shared with the helper through *file. Its size cannot change,
 * so no access fails. Returns NULL and sets errno if memory, descriptors or addresses run out, or
 * if it exceeds RLIMIT_FSIZE. */
void *process_share(size_t bytes, int *file);
/* In the helper: maps `bytes` bytes of the file; NULL if the file is smaller. */
void *process_map(int file, size_t bytes);

/* Waits until one of the processes has an answer to read, or until the time is over. */
void process_wait(const struct process *const list[], size_t count, uint64_t microseconds);

/* Reads available bytes of the answer. Returns their number; 0 at the end of the answer; or -1 and
 * sets errno, to EAGAIN if there is nothing to read yet. */
ptrdiff_t process_read(const struct process *process, void *to, size_t size);

/* Waits up to `patience` microseconds for the end of the process, then kills the process and its
 * group. Returns false if the process still does not end (a driver that hangs in the kernel). */
bool process_end(struct process *process, uint64_t patience);

#endif
