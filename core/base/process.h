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
    /* A pidfd, if whoever started the process opened one; else -1. A process that lives long needs
     * it: if the application has reaped the process, `id` may belong to another one by now. */
    int handle;
};

/* Starts a program as the leader of a process group. The first argument is its path, the last
 * one NULL. Returns 0 or an error number. */
int process_start(struct process *process, char *const arguments[]);
/* Like process_start(), with a channel instead of the pipe: the helper gets ends[1]. Takes both
 * ends, which are close-on-exec, even if it fails. */
int process_start_with(struct process *process, char *const arguments[], int ends[2]);
/* Moves a descriptor above those that a helper uses; it is low if the application has closed
 * standard descriptors. Returns the new one; or -1, with errno set. */
int process_move_up(int fd);

/* The state of the process with this number, as in ps(1): T if a signal has stopped it, t if a
 * debugger has, Z if it is a zombie; 0 if the system does not say. */
char process_state(int64_t id);
static inline bool process_is_stopped(char state)
{
    return state == 'T' || state == 't';
}

/* Waits until one of the processes has an answer to read, or until the time is over. */
void process_wait(const struct process *const list[], size_t count, uint64_t microseconds);

/* Reads available bytes of the answer. Returns their number; 0 at the end of the answer; or -1 and
 * sets errno, to EAGAIN if there is nothing to read yet. */
ptrdiff_t process_read(const struct process *process, void *to, size_t size);

/* Waits up to `patience` microseconds for the end of the process, then kills the process and its
 * group. Returns false if the process still does not end (a driver that hangs in the kernel). */
bool process_end(struct process *process, uint64_t patience);

#endif
