/* SPDX-License-Identifier: MIT */
/* test_team.c - the thread team runs every group exactly once, for any caller and any
 * number of threads. */
#define _GNU_SOURCE /* sched_setaffinity, nanosleep */
#include "cpu.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { GROUPS = 997, CALLERS = 4, JOBS = 300, THREADS = 64, MOST_RUNS = 1000000 };

struct tally {
    int times[GROUPS]; /* plain: a group run twice at once is a data race that TSan sees */
    int64_t by[THREADS]; /* groups by the thread's number; plain for the same reason */
    _Atomic int64_t sum;
};

static void count_groups(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct tally *tally = user;
    if (first >= end || end > GROUPS || thread >= THREADS)
        abort();
    tally->by[thread] += end - first;
    for (int64_t i = first; i < end; i++) {
        tally->times[i]++;
        atomic_fetch_add_explicit(&tally->sum, i, memory_order_relaxed);
    }
}

static void run(struct team *team, team_fn *fn, void *user, int64_t count, int64_t grain)
{
    const struct team_work work = {
        .fn = fn, .user = user, .count = count, .grain = grain
    };
    team_run(team, &work);
}

/* Counts the runs of a loop that waits for other threads to take part. The test fails after
 * MOST_RUNS runs. */
static void once_more(int *runs)
{
    if (++*runs > MOST_RUNS)
        fail_msg("in %d runs, no other thread has taken part", MOST_RUNS);
}

/* Runs many jobs of many sizes. Returns the first size for which a group was missed or repeated. */
static int64_t stress(struct team *team)
{
    struct tally *tally = malloc(sizeof *tally);
    int64_t wrong = 0;
    for (int job = 0; job < JOBS && !wrong; job++) {
        const int64_t count = 1 + job * 31 % GROUPS;
        *tally = (struct tally){ .sum = 0 };
        run(team, count_groups, tally, count, 1 + job % 5);
        int64_t all = 0;
        for (int i = 0; i < THREADS; i++)
            all += tally->by[i];
        if (all != count)
            wrong = count;
        /* The results are visible here without any further synchronisation. */
        for (int64_t i = 0; i < GROUPS; i++)
            if (tally->times[i] != (i < count))
                wrong = count;
    }
    free(tally);
    return wrong;
}

static void *stress_thread(void *team)
{
    return (void *)(intptr_t)stress(team);
}

static void check_team(uint32_t threads, uint32_t cores)
{
    pthread_t callers[CALLERS];
    struct team *team = team_create(threads, cores);
    assert_non_null(team);
    assert_int_equal(team_size(team), 1);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, stress_thread, team), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(team_size(team), threads);
    team_destroy(team);
}

static void every_group_once(void **state)
{
    (void)state;
    check_team(2, 2);
    check_team(3, 8);
}

/* More threads than cores: none spins, and everything still completes. */
static void oversubscribed(void **state)
{
    (void)state;
    check_team(16, 1);
}

static void one_thread_starts_none(void **state)
{
    struct team *team = team_create(1, 1);
    (void)state;
    assert_int_equal(stress(team), 0);
    assert_int_equal(team_size(team), 1);
    team_destroy(team);
}

static void small_work_starts_none(void **state)
{
    struct team *team = team_create(4, 4);
    struct tally tally = { .sum = 0 };
    (void)state;
    run(team, count_groups, &tally, 10, 10);
    assert_int_equal(team_size(team), 1);
    assert_int_equal(tally.sum, 45);
    team_destroy(team);
    team_destroy(NULL);
}

static uint32_t two_threads(void *user)
{
    ++*(int *)user;
    return 2;
}

/* The number of threads is requested once, and not for small work. */
static void asks_for_the_number_when_needed(void **state)
{
    struct team *team = team_create(4, 4);
    struct tally tally = { .sum = 0 };
    int asked = 0;
    (void)state;
    team_ask(team, two_threads, &asked);
    run(team, count_groups, &tally, 10, 10);
    assert_int_equal(asked, 0);
    assert_int_equal(stress(team), 0);
    assert_int_equal(asked, 1);
    assert_int_equal(team_size(team), 2);
    assert_int_equal(team_limit(team), 2);
    assert_int_equal(asked, 1);
    team_destroy(team);
}

/* Sleeping threads wake up, and spinning threads end with the team. */
static void sleeps_and_wakes(void **state)
{
    struct team *team = team_create(3, 3);
    struct tally tally = { .sum = 0 };
    (void)state;
    for (int i = 0; i < 20; i++) {
        run(team, count_groups, &tally, GROUPS, 1);
        nanosleep(&(struct timespec){ 0, i % 4 * 100000 }, NULL);
    }
    for (int i = 0; i < GROUPS; i++)
        assert_int_equal(tally.times[i], 20);
    team_destroy(team);
}

/* A thread that is suspended during its first piece. */
static void linger(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct tally *tally = user;
    if (thread && !tally->by[thread])
        nanosleep(&(struct timespec){ 0, 200000000 }, NULL);
    count_groups(tally, first, end, thread);
}

/* Repeats until the other thread has taken a piece. */
static void share(struct team *team, team_fn *fn, struct tally *tally)
{
    for (int runs = 0; !tally->by[1]; once_more(&runs))
        run(team, fn, tally, GROUPS, 10);
}

/* Waiting for a delayed thread costs more than it computes. If the system delays the caller as
 * well, the caller has not waited, and another round decides. */
static void not_shared_after_a_delay(void **state)
{
    struct team *team = team_create(2, 2);
    struct tally small;
    int rounds = 0;
    (void)state;
    do {
        struct tally late = { .sum = 0 };
        small = (struct tally){ .sum = 0 };
        share(team, linger, &late);
        for (int i = 0; i < 10; i++)
            run(team, count_groups, &small, GROUPS, 10);
    } while (small.by[0] != 10 * GROUPS && ++rounds < 5);
    assert_int_equal(small.by[0], 10 * GROUPS);
    share(team, count_groups, &small); /* but again, later */
    team_destroy(team);
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void work_long(void *user, int64_t first, int64_t end, uint32_t thread)
{
    pause_ms(10);
    count_groups(user, first, end, thread);
}

/* Waking threads for little work is useless, so the team requires more and more work for it. A few
 * long groups are a lot of work. */
static void woken_for_few_long_groups(void **state)
{
    enum { FEW = 16 };
    struct team *team = team_create(2, 2);
    struct tally tally;
    int rounds = 0;
    (void)state;
    do {
        tally = (struct tally){ .sum = 0 };
        for (int i = 0; i < 200; i++) {
            run(team, count_groups, &tally, GROUPS, 10);
            pause_ms(1);
        }
        tally = (struct tally){ .sum = 0 };
        const struct team_work work = { .fn = work_long,
                                        .user = &tally,
                                        .count = FEW,
                                        .grain = 1,
                                        .units = INT64_C(10000) * FEW };
        team_run(team, &work);
    } while (!tally.by[1] && ++rounds < 3);
    assert_true(tally.by[1] > 0);
    team_destroy(team);
}

/* Which signals the other thread blocks. */
struct masks {
    sigset_t other;
    _Atomic bool seen;
};

static void look_at_mask(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct masks *masks = user;
    (void)first, (void)end;
    if (thread && !masks->seen) {
        pthread_sigmask(SIG_SETMASK, NULL, &masks->other);
        masks->seen = true;
    }
}

/* The application's signals go to its own threads. A thread only receives signals for its own
 * faults. */
static void threads_take_no_signals(void **state)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF };
    static const int others[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGALRM, SIGUSR1 };
    struct masks masks = { .seen = false };
    sigset_t before, after;
    struct team *team = team_create(2, 2);
    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (int runs = 0; !masks.seen; once_more(&runs))
        run(team, look_at_mask, &masks, GROUPS, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        assert_false(sigismember(&masks.other, own[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_true(sigismember(&masks.other, others[i]));
        assert_int_equal(sigismember(&after, others[i]), sigismember(&before, others[i]));
    }
    team_destroy(team);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* The mode in which subnormal results are 0. */
static void flush_to_zero(bool on)
{
#if defined(__x86_64__)
    const unsigned flush = 1u << 15, mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? mode | flush : mode & ~flush);
#else
    const uint64_t flush = UINT64_C(1) << 24;
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" ::"r"(on ? mode | flush : mode & ~flush));
#endif
}

/* Subnormal numbers, and the thread that computed each. */
struct quotients {
    float of[GROUPS];
    uint32_t by[GROUPS];
    _Atomic bool other;
};

static void divide_smallest(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct quotients *q = user;
    for (int64_t i = first; i < end; i++) {
        volatile float x = 0x1p-126f;
        q->of[i] = x / 2;
        q->by[i] = thread;
    }
    if (thread)
        q->other = true;
}

/* All threads use the caller's floating-point mode, whichever thread started them. */
static void mode_is_the_callers(void **state)
{
    static struct quotients q;
    struct team *team = team_create(3, 3);
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        const bool flushes = turn % 2;
        q.other = false;
        flush_to_zero(flushes);
        for (int runs = 0; !q.other; once_more(&runs))
            run(team, divide_smallest, &q, GROUPS, 1);
        flush_to_zero(false);
        for (int i = 0; i < GROUPS; i++)
            if (q.of[i] != (flushes ? 0.0f : 0x1p-127f))
                fail_msg("turn %d: %g by thread %u", turn, (double)q.of[i], q.by[i]);
    }
    team_destroy(team);
}
#endif

#if defined(__linux__)
/* A team of two on two cores. `stay` pins its thread to one of them. */
struct pair {
    struct team *team;
    cpu_set_t all, core[2];
    const cpu_set_t *stay;
    _Atomic bool came, elsewhere; /* the thread took part; on another core than core[0] */
};

static void come(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct pair *pair = user;
    (void)first, (void)end;
    if (thread == 0)
        return;
    if (pair->stay)
        sched_setaffinity(0, sizeof *pair->stay, pair->stay);
    else if (!CPU_ISSET((unsigned)sched_getcpu(), &pair->core[0]))
        pair->elsewhere = true;
    pair->came = true;
}

/* Runs jobs on core[i] until the thread takes part. */
static void run_on(struct pair *pair, int i)
{
    assert_int_equal(sched_setaffinity(0, sizeof pair->core[i], &pair->core[i]), 0);
    pair->came = false;
    for (int k = 0; k < 100000 && !pair->came; k++)
        run(pair->team, come, pair, GROUPS, 1);
}

static void begin_pair(struct pair *pair)
{
    cpu_set_t both;
    int found = 0;
    *pair = (struct pair){ 0 };
    CPU_ZERO(&both);
    assert_int_equal(sched_getaffinity(0, sizeof pair->all, &pair->all), 0);
    for (unsigned i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &pair->all)) {
            CPU_SET(i, &pair->core[found++]);
            CPU_SET(i, &both);
        }
    if (found < 2)
        skip();
    assert_int_equal(sched_setaffinity(0, sizeof both, &both), 0);
    pair->team = team_create(2, 2);
}

static void end_pair(struct pair *pair)
{
    assert_int_equal(sched_setaffinity(0, sizeof pair->all, &pair->all), 0);
    team_destroy(pair->team);
}

/* The caller has moved to the core on which the thread fell asleep, and which was allowed when the
 * thread was last woken. */
static void woken_elsewhere(void **state)
{
    struct pair pair;
    (void)state;
    begin_pair(&pair);
    for (int i = 0; i < 100 && !pair.elsewhere; i++) {
        pair.stay = &pair.core[0];
        run_on(&pair, 1);
        pause_ms(2); /* until it sleeps */
        run_on(&pair, 1);
        pair.stay = NULL;
        pause_ms(2);
        run_on(&pair, 0);
    }
    assert_true(pair.elsewhere);
    end_pair(&pair);
}

/* As taskset -a sets it. */
static void affinity_is_kept(void **state)
{
    struct pair pair;
    bool came = false;
    (void)state;
    begin_pair(&pair);
    pair.stay = &pair.core[0];
    run_on(&pair, 0);
    pair.stay = NULL;
    for (int i = 0; i < 10; i++) {
        pause_ms(2);
        run_on(&pair, 0);
        came = came || pair.came;
    }
    assert_true(came);
    assert_false(pair.elsewhere);
    end_pair(&pair);
}
#endif

static int64_t now(clockid_t clock)
{
    struct timespec t;
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The CPU-time clocks of a team of three. */
struct clocks {
    clockid_t of[3];
    _Atomic bool known[3];
};

static void tell_clock(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct clocks *clocks = user;
    (void)first, (void)end;
    if (!clocks->known[thread])
        pthread_getcpuclockid(pthread_self(), &clocks->of[thread]);
    clocks->known[thread] = true;
}

static int64_t time_of_threads(const struct clocks *clocks)
{
    return now(clocks->of[1]) + now(clocks->of[2]);
}

/* Eventually, the threads use no CPU time in ten consecutive pauses: even an occasional look for
 * work would count. */
static bool become_idle(const struct clocks *clocks)
{
    int idle = 0;
    for (int i = 0; i < 500 && idle < 10; i++) {
        const int64_t before = time_of_threads(clocks);
        pause_ms(10);
        idle = time_of_threads(clocks) == before ? idle + 1 : 0;
    }
    return idle == 10;
}

/* Work that is too small to be shared does not wake them. */
static bool stay_idle(struct team *team, const struct clocks *clocks)
{
    struct tally tally = { .sum = 0 };
    const bool idle = become_idle(clocks);
    const int64_t before = time_of_threads(clocks);
    for (int i = 0; i < 10000; i++)
        run(team, count_groups, &tally, 10, 6);
    assert_int_equal(tally.by[0], 100000);
    return idle && time_of_threads(clocks) == before;
}

/* Spinning threads look idle while they get no core, and fall asleep later. Threads that never
 * sleep, or are woken, fail in every round. */
static void idle_threads_sleep(void **state)
{
    struct clocks clocks = { .known = { false } };
    bool idle = false;
    struct team *team = team_create(3, 3);
    (void)state;
    for (int runs = 0; !clocks.known[1] || !clocks.known[2]; once_more(&runs))
        run(team, tell_clock, &clocks, GROUPS, 1);
    for (int i = 0; i < 5 && !idle; i++)
        idle = stay_idle(team, &clocks);
    assert_true(idle);
    team_destroy(team);
}

/* A team of two whose other thread is on a slow core: each of its pieces lasts until the caller has
 * computed `slower` times as many groups, or all remaining ones. */
struct pace {
    struct tally tally;
    int64_t slower;
    int64_t pieces;       /* of the slow thread */
    _Atomic int64_t fast; /* groups that the caller has computed */
    bool stalled;         /* the caller waited for the slow thread */
};

/* If the caller does not get that far, it waits for this thread. That is an error, reported after a
 * timeout. */
static void be_slow(struct pace *pace, int64_t groups)
{
    const int64_t left = GROUPS - pace->tally.by[1] - groups;
    const int64_t more = pace->fast + pace->slower * groups;
    const int64_t until = now(CLOCK_MONOTONIC) + INT64_C(20000000000);
    while (!pace->stalled && pace->fast < (more < left ? more : left)) {
        sched_yield();
        pace->stalled = now(CLOCK_MONOTONIC) > until;
    }
    pace->pieces++;
}

static void keep_pace(void *user, int64_t first, int64_t end, uint32_t thread)
{
    struct pace *pace = user;
    if (thread)
        be_slow(pace, end - first);
    count_groups(&pace->tally, first, end, thread);
    if (!thread)
        pace->fast += end - first;
}

/* Repeats until the slow thread takes part. */
static struct pace share_with_slow(int64_t slower)
{
    struct team *team = team_create(2, 2);
    struct pace pace;
    int runs = 0;
    do {
        once_more(&runs);
        pace = (struct pace){ .slower = slower };
        run(team, keep_pace, &pace, GROUPS, 1);
    } while (!pace.tally.by[1]);
    team_destroy(team);
    return pace;
}

/* As on the cores of hybrid processors. */
static void slow_core_takes_less(void **state)
{
    const struct pace pace = share_with_slow(4);
    (void)state;
    assert_false(pace.stalled);
    assert_int_equal(pace.tally.by[0] + pace.tally.by[1], GROUPS);
    assert_true(pace.tally.by[0] >= 2 * pace.tally.by[1]);
}

/* Another program takes the core during the thread's first piece, and keeps it. */
static void other_work_holds_up_one_piece(void **state)
{
    const struct pace pace = share_with_slow(GROUPS);
    (void)state;
    assert_false(pace.stalled);
    assert_int_equal(pace.tally.by[0] + pace.tally.by[1], GROUPS);
    assert_int_equal(pace.pieces, 1);
    assert_true(pace.tally.by[1] <= GROUPS / 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_group_once),
        cmocka_unit_test(oversubscribed),
        cmocka_unit_test(one_thread_starts_none),
        cmocka_unit_test(small_work_starts_none),
        cmocka_unit_test(asks_for_the_number_when_needed),
        cmocka_unit_test(sleeps_and_wakes),
        cmocka_unit_test(not_shared_after_a_delay),
        cmocka_unit_test(woken_for_few_long_groups),
#if defined(__linux__)
        cmocka_unit_test(woken_elsewhere),
        cmocka_unit_test(affinity_is_kept),
#endif
        cmocka_unit_test(idle_threads_sleep),
        cmocka_unit_test(slow_core_takes_less),
        cmocka_unit_test(other_work_holds_up_one_piece),
        cmocka_unit_test(threads_take_no_signals),
#if defined(__x86_64__) || defined(__aarch64__)
        cmocka_unit_test(mode_is_the_callers),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
