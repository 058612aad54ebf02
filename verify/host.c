/* SPDX-License-Identifier: MIT */
/* host.c - see host.h. */
#define _GNU_SOURCE /* sched_getaffinity(), madvise() */

#include "host.h"

#include "caches.h"
#include "host_loops.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { HUGE_PAGE = 2 << 20, MOST_THREADS = 1024, LEAST_ROUNDS = 3, MOST_ROUNDS = 1000 };
static const char *const cores_folder = "/sys/devices/system/cpu";
static const uint64_t memory_least = UINT64_C(128) << 20, memory_most = UINT64_C(1) << 30;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- threads ---- */

/* The work of each thread in a round: `repeats` times `turns` turns of the loop. */
struct work {
    const struct host_loop *loop;
    int64_t turns, repeats;
    uint64_t bytes; /* of its own memory that it reads; 0: none */
    int rounds;
};

/* The threads of one measurement. They wait for each other, so none works if one is missing. */
struct crew {
    pthread_mutex_t start; /* held until `complete` is known */
    pthread_barrier_t ready;
    bool complete;
};

struct worker {
    const struct work *work;
    struct crew *crew;
    double begin[MOST_ROUNDS], end[MOST_ROUNDS];
    bool failed;
};

static void *memory_for(uint64_t bytes)
{
    const uint64_t whole = (bytes + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, whole);
    if (!memory)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, whole, MADV_HUGEPAGE);
#endif
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)memory)[i] = 0.5f; /* no zeros */
    return memory;
}

static void work_in_rounds(struct worker *w)
{
    const struct work *work = w->work;
    void *memory = memory_for(work->bytes ? work->bytes : 64);
    w->failed = !memory;
    if (memory)
        work->loop->loop(memory, work->turns);
    for (int round = 0; round < work->rounds; round++) {
        pthread_barrier_wait(&w->crew->ready);
        w->begin[round] = now();
        for (int64_t i = 0; i < work->repeats && memory; i++)
            work->loop->loop(memory, work->turns);
        w->end[round] = now();
    }
    free(memory);
}

static void *worker_main(void *user)
{
    struct worker *w = user;
    pthread_mutex_lock(&w->crew->start);
    const bool complete = w->crew->complete;
    pthread_mutex_unlock(&w->crew->start);
    if (complete)
        work_in_rounds(w);
    return NULL;
}

/* The seconds of the shortest round, from the first thread's start to the last one's end: other
 * work on the machine only makes rounds longer. 0: out of memory. */
static double shortest(const struct worker *workers, uint32_t threads, int rounds)
{
    double best = 0;
    for (int round = 0; round < rounds; round++) {
        double begin = workers[0].begin[round], end = workers[0].end[round];
        for (uint32_t i = 0; i < threads; i++) {
            begin = workers[i].begin[round] < begin ? workers[i].begin[round] : begin;
            end = workers[i].end[round] > end ? workers[i].end[round] : end;
            if (workers[i].failed)
                return 0;
        }
        best = round == 0 || end - begin < best ? end - begin : best;
    }
    return best;
}

/* Runs workers 1 .. threads - 1; the caller is worker 0. Returns false if some cannot be
 * started. */
static bool run_workers(struct crew *crew, struct worker *workers, uint32_t threads)
{
    pthread_t *ids = calloc(threads, sizeof *ids);
    uint32_t started = 0;
    pthread_mutex_lock(&crew->start);
    while (ids && started + 1 < threads &&
           !pthread_create(&ids[started], NULL, worker_main, &workers[started + 1]))
        started++;
    crew->complete = ids && started + 1 == threads;
    pthread_mutex_unlock(&crew->start);
    if (crew->complete)
        work_in_rounds(&workers[0]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    return crew->complete;
}

/* A rate of all threads together; 0: out of memory or threads. */
static double rate_of(const struct work *work, uint32_t threads)
{
    struct worker *workers = calloc(threads, sizeof *workers);
    struct crew crew = { .start = PTHREAD_MUTEX_INITIALIZER };
    double seconds = 0;
    if (workers && !pthread_barrier_init(&crew.ready, NULL, threads)) {
        for (uint32_t i = 0; i < threads; i++) {
            workers[i].work = work;
            workers[i].crew = &crew;
        }
        if (run_workers(&crew, workers, threads))
            seconds = shortest(workers, threads, work->rounds);
        pthread_barrier_destroy(&crew.ready);
    }
    free(workers);
    const double amount = work->loop->turn * (double)(work->turns * work->repeats);
    return seconds > 0 ? amount * threads / seconds : 0;
}

/* ---- what there is ---- */

static const struct host_loop *loop_for(enum host_what what)
{
    for (size_t i = 0; i < sizeof host_loops / sizeof host_loops[0]; i++)
        if (host_loops[i].what == what && host_loops[i].runs())
            return &host_loops[i];
    return NULL;
}

static int rounds_in(double seconds, double round)
{
    const double rounds = seconds / round;
    return rounds < LEAST_ROUNDS  ? LEAST_ROUNDS
           : rounds > MOST_ROUNDS ? MOST_ROUNDS
                                  : (int)rounds;
}

/* A round takes about half a millisecond: much longer than reading the clock, and much shorter than
 * a thread usually runs without interruption. */
static struct work arithmetic(const struct host_loop *loop, double seconds)
{
    return (struct work){
        .loop = loop, .turns = 200000, .repeats = 1, .rounds = rounds_in(seconds, 5e-4)
    };
}

/* Each thread reads `bytes`, in whole turns; several times in a round if they are few. */
static struct work reading(const struct host_loop *loop, uint64_t bytes, double seconds)
{
    const int64_t least = INT64_C(16) << 20, turns = (int64_t)(bytes / READ_BYTES) + 1;
    const int64_t whole = turns * READ_BYTES;
    const int64_t repeats = whole < least ? least / whole : 1;
    return (struct work){ .loop = loop,
                          .turns = turns,
                          .repeats = repeats,
                          .bytes = (uint64_t)whole,
                          .rounds = rounds_in(seconds, (double)(whole * repeats) / 2e10) };
}

/* Half of a cache, or of each thread's part of it. */
static uint64_t part_of(const struct data_cache *cache, uint32_t threads)
{
    const uint64_t sharing = threads < cache->cores ? threads : cache->cores;
    return (uint64_t)cache->bytes / 2 / (sharing ? sharing : 1);
}

static struct host_peak read_peak(const char *what, const struct host_loop *loop,
                                  uint64_t one, uint64_t each, uint32_t threads,
                                  double seconds)
{
    struct host_peak peak = { .unit = loop->unit, .reads = true, .bytes = one };
    snprintf(peak.what, sizeof peak.what, "read %s", what);
    const struct work alone = reading(loop, one, seconds);
    const struct work together = reading(loop, each, seconds);
    peak.one = rate_of(&alone, 1);
    peak.all = threads > 1 ? rate_of(&together, threads) : peak.one;
    return peak;
}

/* Reads from each level of cache, and from memory: four times the caches, within limits. */
static int read_peaks(uint32_t threads, double seconds, struct host_peak *peaks)
{
    const struct host_loop *loop = loop_for(HOST_READ);
    uint64_t memory = 4 * (uint64_t)cache_bytes(cores_folder);
    int count = 0;
    if (!loop)
        return 0;
    for (int level = 1; level <= HOST_LEVELS; level++) {
        struct data_cache cache;
        char what[8];
        if (!cache_of_level(cores_folder, level, &cache))
            continue;
        snprintf(what, sizeof what, "L%d", level);
        peaks[count++] = read_peak(what, loop, part_of(&cache, 1), part_of(&cache, threads),
                                   threads, seconds);
    }
    memory = memory < memory_least  ? memory_least
             : memory > memory_most ? memory_most
                                    : memory;
    peaks[count++] = read_peak("memory", loop, memory, memory / threads, threads, seconds);
    return count;
}

int host_caches(uint32_t threads, double seconds, struct host_cache caches[HOST_LEVELS])
{
    const struct host_loop *loop = loop_for(HOST_READ);
    int count = 0;
    for (int level = 1; level <= HOST_LEVELS && loop; level++) {
        struct data_cache cache;
        if (!cache_of_level(cores_folder, level, &cache) || !cache.cores)
            continue;
        const uint32_t groups = (threads + cache.cores - 1) / cache.cores;
        const struct work work = reading(loop, part_of(&cache, threads), seconds);
        caches[count++] = (struct host_cache){ .bytes = cache.bytes * groups,
                                               .rate = rate_of(&work, threads) };
    }
    return count;
}

static const struct {
    enum host_what what;
    const char *name;
} unit_kinds[] = { { HOST_F32, "f32" }, { HOST_BF16, "bf16" }, { HOST_INT8, "int8" } };
enum { UNIT_KINDS = sizeof unit_kinds / sizeof unit_kinds[0] };

double host_rate(const char *what, uint32_t threads, double seconds)
{
    for (int i = 0; i < UNIT_KINDS; i++) {
        const struct host_loop *loop = loop_for(unit_kinds[i].what);
        if (!strcmp(what, unit_kinds[i].name) && loop) {
            const struct work work = arithmetic(loop, seconds);
            return rate_of(&work, threads);
        }
    }
    return 0;
}

int host_peaks(uint32_t threads, double seconds, struct host_peak peaks[HOST_PEAKS])
{
    int count = 0;
    for (int i = 0; i < UNIT_KINDS; i++) {
        const struct host_loop *loop = loop_for(unit_kinds[i].what);
        struct host_peak *peak = &peaks[count];
        if (!loop)
            continue;
        *peak = (struct host_peak){ .unit = loop->unit };
        snprintf(peak->what, sizeof peak->what, "%s", unit_kinds[i].name);
        const struct work work = arithmetic(loop, seconds);
        peak->one = rate_of(&work, 1);
        peak->all = threads > 1 ? rate_of(&work, threads) : peak->one;
        count++;
    }
    return count + read_peaks(threads, seconds, peaks + count);
}

uint32_t host_threads(void)
{
    const char *text = getenv("HW_THREADS");
    const long wanted = text ? strtol(text, NULL, 10) : 0;
    long cores = 1;
#if defined(__linux__)
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set))
        cores = CPU_COUNT(&set);
#endif
    cores = wanted > 0 ? wanted : cores;
    return (uint32_t)(cores < MOST_THREADS ? cores : MOST_THREADS);
}
