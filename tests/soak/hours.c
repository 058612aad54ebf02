/* SPDX-License-Identifier: MIT */
/* hours.c - a long run in which one step in a hundred is a fault (one in ten, in a run of less than
 * a minute). COUNT is its length in seconds, but each fault comes at least twice. Descriptors and
 * threads must not grow at all, resident memory by less than GROWTH KiB, allocated memory by less
 * than HEAP bytes. A run of more than a minute uses an eighth of one processor. */
#define _GNU_SOURCE
#include "hours.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SHARE  0.125  /* of a processor */
#define GROWTH 8192   /* KiB by the slope, in a run of its length */
#define HEAP   262144 /* bytes: more than a thread's cached free blocks, which are counted */

struct run {
    double start, length, next_line;
    long steps, faults;
    bool
        warm; /* a tenth is over, each fault has come: `before` is compared with the rest */
    struct host before;
    size_t heap;                            /* bytes in use at that time */
    double n, sum_t, sum_r, sum_tt, sum_tr; /* for the slope of the resident memory */
};

static double processor_seconds(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Sleeps until the processor time is within its share. */
static void pace(const struct run *run)
{
    const double used = processor_seconds(RUSAGE_SELF) + processor_seconds(RUSAGE_CHILDREN),
                 ahead = used / SHARE - (seconds() - run->start);
    if (run->length > 60 && ahead > 0.01)
        nanosleep(
            &(struct timespec){ .tv_sec = (time_t)ahead,
                                .tv_nsec = (long)(1e9 * (ahead - (double)(time_t)ahead)) },
            NULL);
}

/* Bytes in use; 0 where that is not known. */
static size_t heap_now(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33) && !defined(__SANITIZE_ADDRESS__)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* KiB per hour. */
static double slope(const struct run *run)
{
    const double spread = run->n * run->sum_tt - run->sum_t * run->sum_t;
    return spread > 0 ? 3600 * (run->n * run->sum_tr - run->sum_t * run->sum_r) / spread
                      : 0;
}

static void take(struct run *run, double t, double resident)
{
    run->n++;
    run->sum_t += t;
    run->sum_r += resident;
    run->sum_tt += t * t;
    run->sum_tr += t * resident;
}

static double line_every(const struct run *run)
{
    return run->length > 600 ? 60 : run->length / 10;
}

/* While no context is open. */
static void look(struct run *run)
{
    const double now = seconds() - run->start;
    const struct host host = host_now();
    if (run->warm) {
        check_same(&run->before, &host);
        if (heap_now() > run->heap + HEAP)
            die("%zu bytes are allocated, then %zu", run->heap, heap_now());
        take(run, now, (double)host.resident);
    } else if (now >= run->length / 10 && run->faults >= (long)mishap_count) {
        run->warm = true;
        run->before = host;
        run->heap = heap_now();
    }
    printf("%5.0f s: %ld steps, %ld faults; resident %ld KiB, allocated %zu bytes, "
           "descriptors %d, threads %d; processor %.1f %%\n",
           now, run->steps, run->faults, host.resident, heap_now(), host.descriptors,
           host.threads,
           100 * (processor_seconds(RUSAGE_SELF) + processor_seconds(RUSAGE_CHILDREN)) /
               now);
    fflush(stdout);
    run->next_line = now + line_every(run);
}

/* Makes resident memory show the memory in use: huge pages in stacks and pools would be resident as
 * a whole, and the heap of each thread would keep its own blocks. */
static void prepare(void)
{
    mallopt(M_ARENA_MAX, 1);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    put_good("good");
    put_good("late");
    copy_file(SOAK_FIXTURES "/hw_marked.so", below("marked"), 0666);
    write_file(below("text"), "text\n", 5, 0755);
    if (link(below("late/hw_good.so"), below("original")))
        die("no hard links in %s", root);
}

static void step(struct run *run, struct stay *stay)
{
    run->steps++;
    if (run->steps % (run->length < 60 ? 10 : 100))
        steps[random_below(step_count)].run(stay);
    else
        mishaps[run->faults++ % (long)mishap_count].run(stay);
}

void soak_hours(long count)
{
    struct run run = { .start = seconds(), .length = (double)count };
    struct stay stay;
    run.next_line = line_every(&run);
    prepare();
    stay_open(&stay);
    while (seconds() - run.start < run.length || run.faults < 2 * (long)mishap_count) {
        step(&run, &stay);
        pace(&run);
        if (seconds() - run.start >= run.next_line) {
            stay_close(&stay);
            look(&run);
            stay_open(&stay);
        }
    }
    stay_close(&stay);
    look(&run);
    const double growth = slope(&run) * run.length / 3600;
    printf(
        "hours: %.2f h, %ld steps, %ld of them faults of %zu kinds; resident %ld KiB, then "
        "%ld, slope %.0f KiB/h; allocated %zu bytes, then %zu\n",
        (seconds() - run.start) / 3600, run.steps, run.faults, mishap_count,
        run.before.resident, host_now().resident, slope(&run), run.heap, heap_now());
    if (count >= 600 && growth > GROWTH)
        die("resident memory grows by %.0f KiB in a run of this length", growth);
}
