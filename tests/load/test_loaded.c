/* SPDX-License-Identifier: MIT */
/* test_loaded.c - one thread lists the libraries of the process while another one forks: the child
 * can list its own. */
#define _GNU_SOURCE
#include "load/loaded.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static atomic_bool inside, outside;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

static int stay(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size, (void)user;
    atomic_store(&inside, true);
    pause_ms(50);
    return 1;
}

static int count(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size;
    ++*(int *)user;
    return 0;
}

static void *look(void *unused)
{
    (void)unused;
    loaded_each(stay, NULL);
    atomic_store(&outside, true);
    return NULL;
}

static int look_in_child(void)
{
    int found = 0;
    alarm(30);
    loaded_each(count, &found);
    return found > 0 ? 0 : 1;
}

static void fork_while_others_look(void **state)
{
    pthread_t thread;
    int status, found = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
    assert_int_equal(pthread_detach(thread), 0); /* nobody could join it in the child */
    while (!atomic_load(&inside))
        pause_ms(1);
    const pid_t child = fork();
    if (child == 0)
        _exit(look_in_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    while (!atomic_load(&outside))
        pause_ms(1);
    loaded_each(count, &found); /* and so can this process */
    assert_true(found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(fork_while_others_look) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
