/* SPDX-License-Identifier: MIT */
/* tune_busy.c - the load of other programs during a measurement. A constant load makes all times
 * longer but none of them unsteady, so the spread does not show it. */
#define _POSIX_C_SOURCE 200809L
#include "command/measure.h"
#include "tune.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* Processor time in use. /proc/stat has user, nice, system, idle, iowait, irq, softirq, steal. */
static double all_seconds(void)
{
    double t[8] = { 0 };
    FILE *file = fopen("/proc/stat", "re");
    const int count = file ? fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0],
                                    &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
                           : 0;
    if (file)
        fclose(file);
    return count == 8
               ? (t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) / (double)sysconf(_SC_CLK_TCK)
               : 0;
}

struct tune_load tune_load_now(void)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    return (struct tune_load){ .own = seconds_of(&own.ru_utime) + seconds_of(&own.ru_stime),
                               .all = all_seconds(),
                               .time = now_ns() * 1e-9 };
}

double tune_others_since(const struct tune_load *since)
{
    const struct tune_load now = tune_load_now();
    const double room = (now.time - since->time) * (double)sysconf(_SC_NPROCESSORS_ONLN),
                 others = now.all - since->all - (now.own - since->own);
    return room > 0 && others > 0 && since->all > 0 ? others / room : 0;
}
