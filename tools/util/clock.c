/* SPDX-License-Identifier: MIT */
/* clock.c - see clock.h. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime() */
#include "clock.h"

#include <time.h>

double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double now(void)
{
    return 1e-9 * now_ns();
}
