/* SPDX-License-Identifier: MIT */
/* test_team.c - the thread team runs every group exactly once, for any caller and any
 * number of threads. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "cpu.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { GROUPS = 997, CALLERS = 4, JOBS = 300 };

struct tally {
    int times[GROUPS]; /* plain: a group run twice at once is a data race that TSan sees */
    _Atomic int64_t sum;
};

static void count_groups(void *user, int64_t first, int64_t end)
{
    struct tally *tally = user;
    if (first >= end || end > GROUPS)
        abort();
    for (int64_t i = first; i < end; i++) {
        tally->times[i]++;
        atomic_fetch_add_explicit(&tally->sum, i, memory_order_relaxed);
    }
}

/* Runs many jobs of many sizes; answers the first size for which a group was missed or
 * repeated. */
static int64_t stress(struct team *team)
{
    struct tally *tally = malloc(sizeof *tally);
    int64_t wrong = 0;
    for (int job = 0; job < JOBS && !wrong; job++) {
        const int64_t count = 1 + job * 31 % GROUPS;
        *tally = (struct tally){ { 0 }, 0 };
        team_run(team, count_groups, tally, count, 1 + job % 5);
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

/* More threads than cores: none spins, and all of it still ends. */
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
    struct tally tally = { { 0 }, 0 };
    (void)state;
    team_run(team, count_groups, &tally, 10, 10);
    assert_int_equal(team_size(team), 1);
    assert_int_equal(tally.sum, 45);
    team_destroy(team);
    team_destroy(NULL);
}

/* Threads asleep are woken, and those that still spin are ended. */
static void sleeps_and_wakes(void **state)
{
    struct team *team = team_create(3, 3);
    struct tally tally = { { 0 }, 0 };
    (void)state;
    for (int i = 0; i < 20; i++) {
        team_run(team, count_groups, &tally, GROUPS, 1);
        nanosleep(&(struct timespec){ 0, i % 4 * 100000 }, NULL);
    }
    for (int i = 0; i < GROUPS; i++)
        assert_int_equal(tally.times[i], 20);
    team_destroy(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_group_once),       cmocka_unit_test(oversubscribed),
        cmocka_unit_test(one_thread_starts_none), cmocka_unit_test(small_work_starts_none),
        cmocka_unit_test(sleeps_and_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
