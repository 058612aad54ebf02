/* SPDX-License-Identifier: MIT */
/* stopwatch.c - reads /proc/<process>/task/<thread>/schedstat: how long the thread ran, and how
 * long it waited for a processor, in nanoseconds. */
#define _GNU_SOURCE
#include "stopwatch.h"

#include "base/platform.h"
#include "base/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where the system does not say how long a process waited, time counts only a quarter. */
enum { UNKNOWN = 4 };
/* Microseconds between two looks, at most. If it was longer, this process did not run either: the
 * machine is busy, or both processes were frozen. */
enum { LONGEST = 1000000 };
/* How deep processes are counted: a plugin may start a compiler, which starts a linker. */
enum { GENERATIONS = 4 };

static FILE *open_file(long process, long thread, const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/%s", process, thread, name);
    return fopen(path, "re");
}

static void add_thread(long process, long thread, struct run_times *times)
{
    FILE *file = open_file(process, thread, "schedstat");
    uint64_t ran, waited;
    if (file && fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2) {
        times->ran += ran / 1000;
        times->waited += waited / 1000;
        times->known = true;
    }
    if (file)
        fclose(file);
    times->ready = times->ready || process_state(thread) == 'R';
}

static void add_process(long process, int generations, struct run_times *times)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task", process);
    DIR *threads = opendir(path);
    for (const struct dirent *entry; threads && (entry = readdir(threads));) {
        const long thread = strtol(entry->d_name, NULL, 10);
        if (thread <= 0)
            continue;
        add_thread(process, thread, times);
        FILE *children = generations > 1 ? open_file(process, thread, "children") : NULL;
        for (long child; children && fscanf(children, "%ld", &child) == 1;)
            add_process(child, generations - 1, times);
        if (children)
            fclose(children);
    }
    if (threads)
        closedir(threads);
}

static struct run_times times_of(pid_t process)
{
    struct run_times times = { 0 };
    add_process(process, GENERATIONS, &times);
    return times;
}

/* A thread that has ended is missing from the sums. */
static uint64_t growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

void stopwatch_start(struct stopwatch *stopwatch, pid_t process)
{
    *stopwatch = (struct stopwatch){ .process = process,
                                     .last = times_of(process),
                                     .looked = microseconds_now() };
}

/* Threads may wait at the same time, so that their waiting is longer than the time that passed:
 * then what they computed counts. A wait is known only when it has ended, so that no time passes
 * for a process that is ready and has got no processor since the last look. */
void stopwatch_look(struct stopwatch *stopwatch)
{
    const struct run_times now = times_of(stopwatch->process);
    const uint64_t looked = microseconds_now(), between = looked - stopwatch->looked,
                   since = between < LONGEST ? between : LONGEST,
                   ran = growth(stopwatch->last.ran, now.ran),
                   waited = growth(stopwatch->last.waited, now.waited);
    const unsigned processors = usable_processors();
    stopwatch->wall += now.known ? since : since / UNKNOWN;
    stopwatch->ran += ran;
    stopwatch->waited += waited;
    stopwatch->looked = looked;
    stopwatch->last = now;
    if (now.ready && !ran && !waited)
        return;
    const uint64_t computed = stopwatch->ran / (processors ? processors : 1),
                   rest = growth(stopwatch->waited, stopwatch->wall);
    stopwatch->passed = rest > computed ? rest : computed;
}
