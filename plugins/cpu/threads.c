/* SPDX-License-Identifier: MIT */
/* The team: threads that share an op's groups.
 *
 * A counter hands out the work in pieces, so a thread that the operating system suspends
 * delays only its own piece. A job has a gate: a thread that finds it open enters, takes
 * pieces until none is left, and leaves. When nothing is left to hand out, the caller closes
 * the gate and waits for the threads inside. A thread that comes later finds the gate closed
 * and does not see a job that has ended.
 *
 * A thread without work spins for SPIN_NS, because the next op is usually microseconds away;
 * then it sleeps. A team with more threads than cores never spins: its threads would take
 * time from each other. */
#define _GNU_SOURCE /* pthread_attr_setaffinity_np */
#include "cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS     70000
#define SPIN_PAUSES 32 /* between two looks at the clock */
#define LINE        64 /* bytes of a cache line */
#define PIECES      4  /* handed out per thread, where there is enough */

/* The gate is one word, so that entering is one exchange. It holds the number of threads
 * inside, whether the gate is open, and a number that differs from one job to the next. */
#define GATE_INSIDE UINT64_C(0xffff)
#define GATE_OPEN   UINT64_C(0x10000)
#define GATE_NEXT   UINT64_C(0x100000000)

struct job {
    team_fn *fn;
    void *user;
    int64_t count, piece;
};

struct team {
    _Alignas(LINE) _Atomic uint64_t gate;
    _Alignas(LINE) _Atomic int64_t next; /* the next group to hand out */
    _Alignas(LINE) struct job job; /* written only while the gate is closed and empty */
    _Atomic bool busy;             /* a caller is using the team */
    _Atomic bool stop;
    _Atomic bool waiting;      /* the caller sleeps until the gate is empty */
    _Atomic uint32_t sleeping; /* threads that must be woken */
    pthread_mutex_t lock;      /* held around sleeping and waking only */
    pthread_cond_t work, done;
    pthread_t *threads;
    uint32_t wanted;          /* threads, the caller among them */
    _Atomic uint32_t started; /* of them, without the caller */
    bool tried;               /* whether they were started */
    bool spin;
    pid_t process; /* that started them: a forked child does not have them */
#if defined(__linux__)
    cpu_set_t cores; /* affinity of the thread that created the team */
    bool has_cores;
#endif
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* Spins for a while, then reads the clock. Returns false when it is time to sleep. */
struct spinner {
    int64_t until;
};

static bool spin_once(struct spinner *spinner)
{
    for (int i = 0; i < SPIN_PAUSES; i++)
        pause_briefly();
    const int64_t now = now_ns();
    if (!spinner->until)
        spinner->until = now + SPIN_NS;
    return now < spinner->until;
}

/* ---- a job ---- */

static void take_pieces(struct team *team, const struct job *job)
{
    for (;;) {
        const int64_t first = atomic_fetch_add_explicit(&team->next, job->piece,
                                                        memory_order_relaxed);
        if (first >= job->count)
            return;
        const int64_t left = job->count - first;
        job->fn(job->user, first, first + (left < job->piece ? left : job->piece));
    }
}

static bool gate_enter(struct team *team, uint64_t gate)
{
    while (gate & GATE_OPEN)
        if (atomic_compare_exchange_weak_explicit(
                &team->gate, &gate, gate + 1, memory_order_acquire, memory_order_acquire))
            return true;
    return false;
}

static void gate_leave(struct team *team)
{
    const uint64_t before = atomic_fetch_sub(&team->gate, 1);
    if ((before & GATE_INSIDE) == 1 && atomic_load(&team->waiting)) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->lock);
    }
}

/* ---- the threads ---- */

/* Sleeps until the gate's job is not `seen`, or the team stops. The order matters: the caller
 * opens the gate, then reads `sleeping`; this thread increments `sleeping`, then reads the
 * gate. So at least one of them sees the other. */
static void sleep_at(struct team *team, uint64_t seen)
{
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleeping, 1);
    while (atomic_load(&team->gate) / GATE_NEXT == seen && !atomic_load(&team->stop))
        pthread_cond_wait(&team->work, &team->lock);
    atomic_fetch_sub(&team->sleeping, 1);
    pthread_mutex_unlock(&team->lock);
}

static void *thread_main(void *user)
{
    struct team *team = user;
    uint64_t seen = 0;
    struct spinner spinner = { 0 };

    while (!atomic_load_explicit(&team->stop, memory_order_relaxed)) {
        const uint64_t gate = atomic_load_explicit(&team->gate, memory_order_acquire);
        if (gate / GATE_NEXT != seen) {
            seen = gate / GATE_NEXT;
            if (gate_enter(team, gate)) {
                take_pieces(team, &team->job);
                gate_leave(team);
            }
            spinner.until = 0;
        } else if (!team->spin || !spin_once(&spinner)) {
            sleep_at(team, seen);
            spinner.until = 0;
        }
    }
    return NULL;
}

/* If the system refuses to start some of the threads, the team works with fewer. */
static void start_threads(struct team *team)
{
    pthread_attr_t attributes;
    uint32_t started = 0;

    team->tried = true;
    team->process = getpid();
    team->threads = calloc(team->wanted, sizeof *team->threads);
    if (!team->threads || pthread_attr_init(&attributes))
        return;
#if defined(__linux__)
    if (team->has_cores)
        pthread_attr_setaffinity_np(&attributes, sizeof team->cores, &team->cores);
#endif
    while (started + 1 < team->wanted &&
           pthread_create(&team->threads[started], &attributes, thread_main, team) == 0)
        started++;
    pthread_attr_destroy(&attributes);
    atomic_store(&team->started, started);
}

/* ---- the caller ---- */

static void gate_open(struct team *team, const struct job *job)
{
    team->job = *job;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    const uint64_t gate = atomic_load_explicit(&team->gate, memory_order_relaxed);
    atomic_store(&team->gate, (gate / GATE_NEXT + 1) * GATE_NEXT | GATE_OPEN);
    if (atomic_load(&team->sleeping)) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_broadcast(&team->work);
        pthread_mutex_unlock(&team->lock);
    }
}

static void gate_close(struct team *team)
{
    struct spinner spinner = { 0 };

    atomic_fetch_and(&team->gate, ~GATE_OPEN);
    while (atomic_load_explicit(&team->gate, memory_order_acquire) & GATE_INSIDE) {
        if (team->spin && spin_once(&spinner))
            continue;
        pthread_mutex_lock(&team->lock);
        atomic_store(&team->waiting, true);
        while (atomic_load(&team->gate) & GATE_INSIDE)
            pthread_cond_wait(&team->done, &team->lock);
        atomic_store(&team->waiting, false);
        pthread_mutex_unlock(&team->lock);
    }
}

void team_run(struct team *team, team_fn *fn, void *user, int64_t count, int64_t grain)
{
    const int64_t threads = team->wanted;

    if (threads == 1 || count <= grain || atomic_exchange(&team->busy, true)) {
        fn(user, 0, count);
        return;
    }
    if (!team->tried)
        start_threads(team);
    const int64_t piece = count / (threads * PIECES);
    const struct job job = { fn, user, count, piece > grain ? piece : grain };
    gate_open(team, &job);
    take_pieces(team, &job);
    gate_close(team);
    atomic_store_explicit(&team->busy, false, memory_order_release);
}

uint32_t team_size(const struct team *team)
{
    return atomic_load(&team->started) + 1;
}

/* ---- creating and destroying ---- */

struct team *team_create(uint32_t threads, uint32_t cores)
{
    struct team *team = aligned_alloc(LINE, (sizeof *team + LINE - 1) / LINE * LINE);
    if (!team)
        return NULL;
    memset(team, 0, sizeof *team);
    team->wanted = threads < 1             ? 1
                   : threads > GATE_INSIDE ? (uint32_t)GATE_INSIDE
                                           : threads;
    team->spin = team->wanted <= cores;
#if defined(__linux__)
    team->has_cores = sched_getaffinity(0, sizeof team->cores, &team->cores) == 0;
#endif
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
    return team;
}

void team_destroy(struct team *team)
{
    if (!team)
        return;
    const uint32_t started = atomic_load(&team->started);
    if (started &&
        team->process != getpid()) /* forked: no threads to join, and a lock may be held */
        return;
    pthread_mutex_lock(&team->lock);
    atomic_store(&team->stop, true);
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(team->threads[i], NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->work);
    pthread_mutex_destroy(&team->lock);
    free(team->threads);
    free(team);
}
