/* SPDX-License-Identifier: MIT */
/* tracer.h - a process whose n-th system call fails, or that of a process which it starts: by
 * ptrace(), of Linux on x86-64 and AArch64. */
#ifndef TRACER_H
#define TRACER_H

#include <stdbool.h>
#include <sys/types.h>

/* Of the traced process, and of those that it starts: hw-probe, and what that forks. */
enum role { ROLE_HOST, ROLE_WATCHER, ROLE_WORKER };

struct fault {
    unsigned call; /* among those of its number, from 1; 0: none fails */
    int number;    /* of the system call */
    int error;
    bool shorten; /* it reads or writes half of what it was asked for, and does not fail */
    bool made;    /* by trace(): there was such a call */
};

/* The calls of a role, in their order. */
struct census {
    unsigned count;
    int number[8192];
};

/* The errors of a system call, by its manual page, and EINTR. */
struct faulty {
    const char *name;
    int number;
    bool shorten;
    unsigned count;
    int error[14];
};
/* Of a call that is not listed: no errors. */
const struct faulty *faults_of(int number);
const char *call_name(int number);

/* False where it may not, or cannot. */
bool tracer_works(void);
/* In the process that is to be traced, first of all: waits for trace(). */
void tracer_submit(void);
/* In it: calls from here on are counted if they are the host's; and from there on
 * not any more. */
void tracer_begin(void);
void tracer_end(void);
/* Traces a process that was forked, until it ends. Returns its status. `census` may be NULL. */
int trace(pid_t id, enum role role, struct fault *fault, struct census *census);

#endif
