/* SPDX-License-Identifier: MIT */
/* process.h - a helper program in a process of its own, which answers through a pipe.
 *
 * The application's children, signal mask, handlers and descriptors are its own: only the
 * helper is waited for, and it inherits none of these. Its exit status is not used, so that it
 * does not matter who reaps it: an application that ignores SIGCHLD, or that waits for any
 * child, works as well. */
#ifndef HW_BASE_PROCESS_H
#define HW_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The descriptor of the helper that its answer goes to. Those before it lead nowhere; it has
 * to close those behind it. */
#define PROCESS_ANSWER 3

struct process {
    int64_t id; /* 0: none */
    int answer;
    int handle; /* of a process that is kept, where the system has such; else -1. Its number may
                 * be another's by now, if the application has reaped it. */
};

/* Starts a program, as the leader of a process group. The first argument is its path, the last
 * one NULL. Returns 0, or an error number. */
int process_start(struct process *process, char *const arguments[]);

/* The same with a socket in place of the pipe, which takes files as well. Each answer is a packet:
 * process_read() takes one at a time. */
int process_start_socket(struct process *process, char *const arguments[]);

/* Sends a file to the helper, which takes it with process_receive_file(). False if that cannot be
 * done at once. */
bool process_send_file(const struct process *process, int file);
/* In the helper: waits for a file, and returns its descriptor; -1 if there will be
 * none, or, with EMFILE in errno, if no descriptor is left for this one. */
int process_receive_file(int socket);
/* Ends the connection, as the end of this process would. */
void process_hang_up(const struct process *process);
/* Resumes a process that is kept, if somebody has stopped it, where the system has handles for
 * processes. */
void process_resume(const struct process *process);
/* What the process with this number does, as ps(1) has it: T if it is stopped by a signal, t by a
 * debugger, Z if it has ended and its parent does not know yet; 0 if the system does not say. */
char process_state(int64_t id);

/* Memory that can be shared with the helper by its file: zeros. Its size stays as it is, so that no
 * access fails. NULL, and errno, if there is not enough of memory, descriptors or addresses, or
 * if the application's files may not be as large (RLIMIT_FSIZE). */
void *process_share(size_t bytes, int *file);
/* In the helper: the whole file, of at least so many bytes; NULL if it is smaller. */
void *process_map(int file, size_t bytes);

/* Waits until an answer of one of the processes can be read, or for so long. */
void process_wait(const struct process *const list[], size_t count, uint64_t microseconds);

/* Reads what there is of the answer: a number of bytes; 0 at its end; -1, and errno, which is
 * EAGAIN if there is nothing yet. */
ptrdiff_t process_read(const struct process *process, void *to, size_t size);

/* Waits for the end of the process: not at all, if it has not ended by itself after so many
 * microseconds, then it and its group are killed. False if it does not end even so, because the
 * system does not let it (a driver that hangs in the kernel). */
bool process_end(struct process *process, uint64_t patience);

#endif
