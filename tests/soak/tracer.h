/* SPDX-License-Identifier: MIT */
/* tracer.h - makes the n-th system call of a process or of its children fail, with Linux's ptrace()
 * on x86-64 and AArch64. */
#ifndef TRACER_H
#define TRACER_H

#include <stdbool.h>
#include <sys/types.h>

/* The traced process, its child hw-probe, and hw-probe's child. */
enum role { ROLE_HOST, ROLE_WATCHER, ROLE_WORKER };

struct fault {
    unsigned call; /* among the calls with its number, from 1; 0: none fails */
    int number;    /* of the system call */
    int error;
    bool shorten; /* it succeeds, but reads or writes half of the requested bytes */
    bool made;    /* by trace(): there was such a call */
};

/* The calls of a role, in their order. */
struct census {
    unsigned count;
    int number[8192];
};

/* The errors of a system call, from its manual page, and EINTR. */
struct faulty {
    const char *name;
    int number;
    bool shorten;
    unsigned count;
    int error[14];
};
/* Without errors for a call that is not listed. */
const struct faulty *faults_of(int number);
const char *call_name(int number);

/* False if tracing is not allowed or not possible. */
bool tracer_works(void);
/* Called first in the process to be traced: waits for trace(). */
void tracer_submit(void);
/* Called in that process: calls are counted and fail only between begin and end. */
void tracer_begin(void);
void tracer_end(void);
/* Traces a forked process until it ends. Returns its status. `census` may be NULL. */
int trace(pid_t id, enum role role, struct fault *fault, struct census *census);

#endif
