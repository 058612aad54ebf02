/* SPDX-License-Identifier: MIT */
/* test_stopwatch.c - the time that hw-probe gives a plugin: not that in which others have the
 * processors, however many these are. */
#define _GNU_SOURCE
#include "stopwatch.h"

#include "base/process.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OTHERS = 3, MOMENT = 200000 /* microseconds */ };

static void spin(void)
{
    for (volatile unsigned long turns = 0;; turns++)
        ;
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* As one that waits for its compiler. */
static void wait_for_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        spin();
    }
    waitpid(child, NULL, 0);
}

static pid_t start(void (*act)(void))
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        act();
    }
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void pause_for(long microseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = microseconds * 1000 }, NULL);
}

/* Looks at a process, once it is in this state (ps(1)), until it has had as much time. */
static struct stopwatch measure(void (*act)(void), char state)
{
    const pid_t child = start(act);
    struct stopwatch stopwatch;
    while (process_state(child) != state)
        pause_for(1000);
    stopwatch_start(&stopwatch, child);
    while (stopwatch.passed < MOMENT) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        pause_for(MOMENT / 20);
        stopwatch_look(&stopwatch);
    }
    end(child);
    return stopwatch;
}

/* All that this process starts is on one processor, beside a few that never wait. */
static int crowd(void **state)
{
    static pid_t others[OTHERS];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return -1;
    for (int i = 0; i < OTHERS; i++)
        others[i] = start(spin);
    *state = others;
    return 0;
}

static int disperse(void **state)
{
    const pid_t *others = *state;
    for (int i = 0; i < OTHERS; i++)
        end(others[i]);
    return 0;
}

static void skip_without_schedstat(void)
{
    if (access("/proc/self/schedstat", R_OK)) {
        print_message(
            "not applicable: the system does not say how long a process waited\n");
        skip();
    }
}

/* With a quarter of the processor it takes four times as long, or nearly. */
static void test_spins(void **state)
{
    (void)state;
    skip_without_schedstat();
    assert_true(measure(spin, 'R').wall > 2 * MOMENT);
}

static void test_waits_for_child(void **state)
{
    (void)state;
    skip_without_schedstat();
    assert_true(measure(wait_for_child, 'S').wall > 2 * MOMENT);
}

/* One that waits for something else has all of the time. */
static void test_sleeps(void **state)
{
    (void)state;
    skip_without_schedstat();
    const struct stopwatch stopwatch = measure(wait_for_ever, 'S');
    assert_true(10 * stopwatch.passed >= 9 * stopwatch.wall);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_spins),
                                        cmocka_unit_test(test_waits_for_child),
                                        cmocka_unit_test(test_sleeps) };
    return cmocka_run_group_tests_name("probe stopwatch", tests, crowd, disperse);
}
