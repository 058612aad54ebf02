/* SPDX-License-Identifier: MIT */
/* machine_posix.c - the functions of platform.h that need nothing else of the library: a proxy is
 * compiled with them, too. */
#define _GNU_SOURCE
#include "base/platform.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

uint64_t microseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

bool is_shortage(int error)
{
    return error == EAGAIN || error == ENOMEM || error == ENOBUFS || error == EMFILE ||
           error == ENFILE || error == ETOOMANYREFS;
}

unsigned usable_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 0 : (unsigned)CPU_COUNT(&set);
#else
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 0 ? 0 : (unsigned)count;
#endif
}
