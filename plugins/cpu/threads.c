/* SPDX-License-Identifier: MIT */
/* The team: threads that share an op's groups.
 *
 * A job is divided into pieces. Each thread has a share of them and takes some at a time from its
 * own cache line; when its share is used up, it takes pieces from the others. So a thread that is
 * suspended or runs on a slower core delays only its current piece, and threads rarely write the
 * same line.
 *
 * A thread marks itself as inside before it looks for a job, and until it has left. The caller ends
 * the job when no piece is left to take, and waits for the threads inside. A thread that comes
 * later finds no job, and cannot see a job that has ended.
 *
 * A thread without work spins for SPIN_NS, because the next op is usually microseconds away; then
 * it sleeps. A team with more threads than cores never spins: its threads would take time from each
 * other. Waking a thread takes longer than a small job, so sleepers are woken only after they have
 * missed enough work. If they were of no use, they are woken later the next time. If other programs
 * use the cores and a thread inside is suspended, the caller waits much longer than the job takes
 * alone. Then short jobs are not shared for a while.
 *
 * The system often wakes a thread on the caller's core, where it waits for milliseconds and then
 * delays the caller. So threads are barred from that core while they are woken, but only if they
 * still have the affinity that the team gave them: somebody may have changed it since, for example
 * with taskset -a. */
#define _GNU_SOURCE /* pthread_attr_setaffinity_np */
#include "cpu.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS     70000
#define SPIN_PAUSES 32   /* between two looks at the clock */
#define LINE        128  /* two threads should not both write one: processors fetch pairs */
#define SHARE       16   /* the most pieces in a thread's share */
#define UNIT_NS     1000 /* about the time of the smallest piece of a job */
#define LONG_JOB    4000 /* units: longer than the system suspends a thread */
#define ALONE       4    /* times as long as the caller waited, jobs are not shared */
/* In units: the work that sleepers miss before they are woken, at first and at most. Waking paid
 * off if they then did as much work as fits in their spin time. */
#define FIRST_MISSED 24
#define MOST_MISSED  16384
#define OF_USE       (SPIN_NS / UNIT_NS)
#define MOST_BARRED  16 /* threads; more find other cores themselves */

struct job {
    team_fn *fn;
    void *user;
    int64_t pieces, threads;
    int64_t groups, longer; /* in each piece; the first `longer` pieces have one more */
    int64_t units;          /* of work, see UNIT_NS */
    uint32_t mode;          /* see float_mode() */
};

/* The word that announces a job: its number, and its number of threads. */
#define THREADS_BITS 16
#define MOST_THREADS ((1u << THREADS_BITS) - 1)

/* The word of a share: the number of the job, and the number of pieces taken. With the number of
 * another job, none is taken. */
#define TAKEN_BITS 8
#define TAKEN_MASK ((UINT64_C(1) << TAKEN_BITS) - 1)
_Static_assert(SHARE <= TAKEN_MASK, "pieces of a share");

/* A thread of the team. The caller has the first place. */
struct member {
    _Alignas(LINE) _Atomic uint64_t share;
    _Atomic bool inside;
    struct team *team;
    pthread_t thread;
    uint32_t number;
    uint32_t mode; /* that the thread has, see float_mode() */
};

struct team {
    /* The current job; 0: none. This line is written only at the beginning and at the end of a job;
     * waiting threads read it. */
    _Alignas(LINE) _Atomic uint64_t open;
    _Atomic bool waiting; /* the caller sleeps until no thread is inside */
    _Atomic bool stop;
    struct job job;                           /* written only while nobody is inside */
    _Alignas(LINE) _Atomic uint32_t sleeping; /* threads that must be woken */
    _Alignas(LINE) _Atomic bool busy;         /* a caller is using the team */
    uint64_t last;                            /* number of a job */
    _Atomic int64_t alone_until;              /* the time; 0: jobs are shared */
    int64_t missed;                           /* units, by threads that sleep */
    int64_t helped;       /* units that threads computed since they were woken */
    int64_t patience;     /* the limit of `missed` at which they are woken */
    pthread_mutex_t lock; /* held around sleeping and waking only */
    pthread_cond_t work, done;
    _Atomic uint32_t wanted; /* threads, including the caller; `count` may lower it */
    _Atomic(team_count_fn *) count; /* still to be called, needs the lock; or NULL */
    void *user;                     /* its argument */
    _Atomic uint32_t started;       /* of them, without the caller */
    bool tried;                     /* whether they were started */
    bool spin;
    pid_t process; /* that started them: a forked child does not have them */
#if defined(__linux__)
    cpu_set_t cores;  /* affinity of the thread that created the team */
    cpu_set_t others; /* where woken threads may run; needs the lock */
    bool has_cores;
#endif
    struct member members[];
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

/* Spins for a while and sometimes reads the clock. Returns false when it is time to sleep. */
struct spinner {
    int64_t until;
    uint32_t pauses;
};

static bool spin_once(struct spinner *spinner)
{
    pause_briefly();
    if (++spinner->pauses % SPIN_PAUSES != 0)
        return true;
    const int64_t now = now_ns();
    if (!spinner->until)
        spinner->until = now + SPIN_NS;
    return now < spinner->until;
}

/* ---- the floating-point mode ---- */

/* The rounding mode, the treatment of subnormal numbers, and the traps: each thread has its own. A
 * team computes with those of its caller. */
#if defined(__x86_64__)
#define FLAGS 0x3fu /* exception flags, not modes */
static uint32_t float_mode(void)
{
    return __builtin_ia32_stmxcsr() & ~FLAGS;
}

static void set_float_mode(uint32_t mode)
{
    __builtin_ia32_ldmxcsr(mode);
}
#elif defined(__aarch64__)
static uint32_t float_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (uint32_t)mode;
}

static void set_float_mode(uint32_t mode)
{
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)mode));
}
#else
static uint32_t float_mode(void)
{
    return 0;
}

static void set_float_mode(uint32_t mode)
{
    (void)mode;
}
#endif

/* ---- a job ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint32_t threads_of(uint64_t open)
{
    return (uint32_t)(open & MOST_THREADS);
}

/* The first piece of a thread's share. */
static int64_t share_begin(const struct job *job, int64_t thread)
{
    return job->pieces * thread / job->threads;
}

static void run_pieces(const struct job *job, int64_t first, int64_t end, uint32_t thread)
{
    job->fn(job->user, first * job->groups + least(first, job->longer),
            end * job->groups + least(end, job->longer), thread);
}

/* Takes a quarter of the pieces that are left in `from`: many at first, because some code gains
 * from long runs, and few at the end, when other threads wait. Returns false if none is left. */
static bool take(struct team *team, uint64_t number, uint32_t from, int64_t *first,
                 int64_t *end)
{
    const int64_t begin = share_begin(&team->job, from);
    const int64_t all = share_begin(&team->job, from + 1) - begin;
    _Atomic uint64_t *share = &team->members[from].share;
    uint64_t now = atomic_load_explicit(share, memory_order_relaxed);
    for (;;) {
        const int64_t taken = now >> TAKEN_BITS == number ? (int64_t)(now & TAKEN_MASK) : 0;
        if (taken >= all)
            return false;
        *first = begin + taken;
        *end = *first + (all - taken + 3) / 4;
        const uint64_t next = number << TAKEN_BITS | (uint64_t)(*end - begin);
        if (atomic_compare_exchange_weak_explicit(share, &now, next, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
}

/* Takes pieces, first from its own share, until none is left. Returns how many it took. */
static int64_t take_pieces(struct team *team, uint64_t open, uint32_t thread)
{
    const uint32_t threads = threads_of(open);
    int64_t first, end, all = 0;
    for (uint32_t i = 0; i < threads; i++) {
        const uint32_t from = thread + i < threads ? thread + i : thread + i - threads;
        for (; take(team, open >> THREADS_BITS, from, &first, &end); all += end - first)
            run_pieces(&team->job, first, end, thread);
    }
    return all;
}

/* ---- the threads ---- */

/* Enters, looks for a job, and leaves. The order matters: this thread marks itself as inside, then
 * reads `open`; the caller closes the job, then reads who is inside. So at least one of them sees
 * the other. The same holds for leaving and `waiting`. */
static uint64_t visit(struct team *team, struct member *self)
{
    atomic_store(&self->inside, true);
    const uint64_t open = atomic_load(&team->open);
    if (self->number < threads_of(open)) {
        if (self->mode != team->job.mode)
            set_float_mode(self->mode = team->job.mode);
        take_pieces(team, open, self->number);
    }
    atomic_store(&self->inside, false);
    if (atomic_load(&team->waiting)) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->lock);
    }
    return open;
}

/* Whether there is a job for this thread that is not `seen`. */
static bool has_job(const struct member *self, uint64_t seen)
{
    const uint64_t open = atomic_load(&self->team->open);
    return open != seen && self->number < threads_of(open);
}

#if defined(__linux__)
/* A team of more threads than cores has no core to spare. */
static bool bars(const struct team *team)
{
    return team->has_cores && team->spin && team->wanted <= MOST_BARRED;
}

static bool may_run_on(pthread_t thread, const cpu_set_t *cores)
{
    cpu_set_t now;
    return pthread_getaffinity_np(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, cores);
}

/* Lets the threads run on the team's cores except the caller's; fails if there is no other core.
 * Threads that were barred earlier and did not sleep may still be barred. */
static void bar_from_core(struct team *team)
{
    const cpu_set_t before = team->others;
    const int core = sched_getcpu();
    const uint32_t started = atomic_load_explicit(&team->started, memory_order_relaxed);
    if (core < 0 || !bars(team))
        return;
    team->others = team->cores;
    CPU_CLR((unsigned)core, &team->others);
    for (uint32_t i = 1; i <= started; i++) {
        const pthread_t thread = team->members[i].thread;
        if (may_run_on(thread, &team->cores) || may_run_on(thread, &before))
            pthread_setaffinity_np(thread, sizeof team->others, &team->others);
    }
}

/* Lets this thread run on all cores again. Needs the lock. */
static void unbar(const struct team *team)
{
    if (bars(team) && may_run_on(pthread_self(), &team->others))
        sched_setaffinity(0, sizeof team->cores, &team->cores);
}
#else
static void bar_from_core(struct team *team)
{
    (void)team;
}

static void unbar(const struct team *team)
{
    (void)team;
}
#endif

/* Sleeps until there is another job than `seen`, or the team stops. As above: the caller opens a
 * job, then reads `sleeping`; this thread increments `sleeping`, then reads `open`. A thread that
 * is not woken because the job is small sees the job when it is about to sleep. */
static void sleep_after(const struct member *self, uint64_t seen)
{
    struct team *team = self->team;
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleeping, 1);
    if (!has_job(self, seen) && !atomic_load(&team->stop))
        pthread_cond_wait(&team->work, &team->lock);
    atomic_fetch_sub(&team->sleeping, 1);
    unbar(team);
    pthread_mutex_unlock(&team->lock);
}

static void *thread_main(void *user)
{
    struct member *self = user;
    struct team *team = self->team;
    struct spinner spinner = { 0 };
    uint64_t seen = 0;

    self->mode = float_mode();
    while (!atomic_load_explicit(&team->stop, memory_order_relaxed)) {
        if (has_job(self, seen)) {
            seen = visit(team, self);
            spinner.until = 0;
        } else if (!team->spin || !spin_once(&spinner)) {
            sleep_after(self, seen);
            spinner.until = 0;
        }
    }
    return NULL;
}

/* Signals belong to the application's threads, except those that a thread causes itself and the
 * profilers' signal. */
static void block_signals(sigset_t *before)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF };
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&set, own[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

static uint32_t within(uint32_t n, uint32_t least, uint32_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* Asks how many threads there should be, unless it is known. */
static void ask(struct team *team)
{
    team_count_fn *const count = atomic_load(&team->count);
    if (!count)
        return;
    const uint32_t wanted = within(count(team->user), 1, atomic_load(&team->wanted));
    pthread_mutex_lock(&team->lock);
    if (atomic_load(&team->count)) { /* the first answer counts: threads may run already */
        atomic_store(&team->wanted, wanted);
        atomic_store(&team->count, NULL);
    }
    pthread_mutex_unlock(&team->lock);
}

/* If the system refuses to start some threads, the team works with fewer. */
static void start_threads(struct team *team)
{
    pthread_attr_t attributes;
    sigset_t signals;
    uint32_t started = 0;

    ask(team);
    team->tried = true;
    team->process = getpid();
    if (pthread_attr_init(&attributes))
        return;
#if defined(__linux__)
    if (team->has_cores)
        pthread_attr_setaffinity_np(&attributes, sizeof team->cores, &team->cores);
#endif
    block_signals(&signals); /* threads inherit the blocked signals */
    while (started + 1 < team->wanted) {
        struct member *member = &team->members[started + 1];
        member->team = team;
        member->number = started + 1;
        if (pthread_create(&member->thread, &attributes, thread_main, member))
            break;
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    pthread_attr_destroy(&attributes);
    atomic_store(&team->started, started);
}

/* ---- the caller ---- */

uint32_t team_size(const struct team *team)
{
    return atomic_load(&team->started) + 1;
}

/* Wakes the sleeping threads if the job needs them and they have missed enough work. */
static void wake(struct team *team, const struct job *job, int64_t sleeping)
{
    if (job->threads + sleeping <= team_size(team))
        return;
    team->missed += job->units;
    if (team->missed < team->patience)
        return;
    team->patience = least(2 * team->patience, MOST_MISSED);
    team->missed = team->helped = 0;
    pthread_mutex_lock(&team->lock);
    bar_from_core(team);
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
}

static uint64_t job_open(struct team *team, const struct job *job)
{
    const uint64_t open = ++team->last << THREADS_BITS | (uint64_t)job->threads;
    team->job = *job;
    atomic_store(&team->open, open);
    const uint32_t sleeping = atomic_load(&team->sleeping);
    if (sleeping)
        wake(team, job, sleeping);
    return open;
}

static bool any_inside(struct team *team)
{
    const uint32_t started = atomic_load_explicit(&team->started, memory_order_relaxed);
    for (uint32_t i = 1; i <= started; i++)
        if (atomic_load(&team->members[i].inside))
            return true;
    return false;
}

static void wait_asleep(struct team *team)
{
    pthread_mutex_lock(&team->lock);
    atomic_store(&team->waiting, true);
    while (any_inside(team))
        pthread_cond_wait(&team->done, &team->lock);
    atomic_store(&team->waiting, false);
    pthread_mutex_unlock(&team->lock);
}

static void job_close(struct team *team)
{
    struct spinner spinner = { 0 };

    atomic_store(&team->open, 0);
    while (any_inside(team))
        if (!team->spin || !spin_once(&spinner))
            wait_asleep(team);
    if (!spinner.until)
        return;
    const int64_t now = now_ns(), waited = now - (spinner.until - SPIN_NS);
    if (waited > SPIN_NS && waited > team->job.units * UNIT_NS)
        atomic_store(&team->alone_until, now + waited * ALONE);
}

static int64_t units_of(const struct team_work *work)
{
    return work->units ? work->units : work->count / work->grain;
}

/* Whether a job of `units` had better not be shared now. */
static bool better_alone(struct team *team, int64_t units)
{
    const int64_t until = atomic_load_explicit(&team->alone_until, memory_order_relaxed);
    if (!until || units > LONG_JOB)
        return false;
    if (now_ns() < until)
        return true;
    atomic_store_explicit(&team->alone_until, 0, memory_order_relaxed);
    return false;
}

/* At least `grain` groups per piece, at most SHARE pieces per thread, and no thread without a
 * piece. */
static struct job divide(const struct team_work *work, int64_t threads)
{
    const int64_t most = work->count / work->grain, pieces = least(most, threads * SHARE);
    return (struct job){
        .fn = work->fn,
        .user = work->user,
        .pieces = pieces,
        .threads = least(threads, pieces),
        .groups = work->count / pieces,
        .longer = work->count % pieces,
        .units = units_of(work),
        .mode = float_mode(),
    };
}

void team_run(struct team *team, const struct team_work *work)
{
    if (team->wanted == 1 || work->count < 2 * work->grain ||
        better_alone(team, units_of(work)) || atomic_exchange(&team->busy, true)) {
        work->fn(work->user, 0, work->count, 0);
        return;
    }
    if (!team->tried)
        start_threads(team);
    const struct job job = divide(work, team_size(team));
    const int64_t own = take_pieces(team, job_open(team, &job), 0);
    team->helped += job.units * (job.pieces - own) / job.pieces;
    if (team->helped >= OF_USE)
        team->patience = FIRST_MISSED;
    job_close(team);
    atomic_store_explicit(&team->busy, false, memory_order_release);
}

uint32_t team_limit(struct team *team)
{
    ask(team);
    return team->wanted;
}

/* ---- creating and destroying ---- */

struct team *team_create(uint32_t threads, uint32_t processors)
{
    const uint32_t wanted = within(threads, 1, MOST_THREADS);
    const size_t bytes = sizeof(struct team) + wanted * sizeof(struct member);
    struct team *team = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (!team)
        return NULL;
    memset(team, 0, bytes);
    team->wanted = wanted;
    team->patience = FIRST_MISSED;
    team->spin = wanted <= processors;
#if defined(__linux__)
    team->has_cores = sched_getaffinity(0, sizeof team->cores, &team->cores) == 0;
    team->others = team->cores;
#endif
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
    return team;
}

void team_ask(struct team *team, team_count_fn *count, void *user)
{
    team->user = user;
    atomic_store(&team->count, count);
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
    for (uint32_t i = 1; i <= started; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->work);
    pthread_mutex_destroy(&team->lock);
    free(team);
}
