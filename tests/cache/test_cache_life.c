/* SPDX-License-Identifier: MIT */
/* test_cache_life.c - how long a verdict is kept: failures expire, verdicts of plugins being loaded
 * are hidden, old verdicts are evicted, and many processes store and read at once. */
#define _GNU_SOURCE
#include "cache_world.h"

#include "cache/locks.h"

#include "fixture.h" /* after those: cmocka has a macro fail */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- time ---- */

static void failures_expire(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    assert_int_equal(store(&w, CACHE_FAILURE).expires, clock_time + 60);
    clock_time += 59;
    assert_true(is_there(&w));
    clock_time += 1;
    assert_false(is_there(&w));
    assert_int_equal(store(&w, CACHE_FAILURE).expires, clock_time + 60);
    store(&w, CACHE_SUCCESS);
    clock_time += 100000000;
    assert_true(is_there(&w));
    clock_time = 1; /* a success does not depend on the clock */
    assert_true(is_there(&w));
    end(&w);
}

static void timeouts_wait_longer_each_time(void **state)
{
    static const int seconds[] = { 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600 };
    struct world w;
    (void)state;
    begin(&w);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct cached stored = store(&w, CACHE_BACKOFF);
        assert_int_equal(stored.timeouts, i + 1);
        assert_int_equal(stored.expires - stored.written, seconds[i]);
        clock_time += seconds[i] - 1;
        assert_true(is_there(&w));
        clock_time += 1;
        assert_false(is_there(&w));
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(store(&w, CACHE_BACKOFF).expires, clock_time + 3600);
    store(&w, CACHE_SUCCESS);
    assert_int_equal(store(&w, CACHE_BACKOFF).expires, clock_time + 10);
    end(&w);
}

/* Several ops that fail in one program count as one failure. */
static void failures_of_one_try(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    for (int i = 0; i < 10; i++) {
        const struct cached stored = store(&w, CACHE_BACKOFF);
        assert_int_equal(stored.timeouts, 1);
        assert_int_equal(stored.expires, clock_time + 10);
        clock_time += 9;
    }
    clock_time += 1;
    assert_int_equal(store(&w, CACHE_BACKOFF).expires, clock_time + 20);
    clock_time -= 1; /* set back: how long ago that was is not known */
    assert_int_equal(store(&w, CACHE_BACKOFF).timeouts, 3);
    end(&w);
}

/* With ops tested on first use, a start without failures does not clear earlier ones. */
static void success_with_an_open_end(void **state)
{
    struct world w;
    struct cached half;
    (void)state;
    begin(&w);
    assert_int_equal(store(&w, CACHE_BACKOFF).expires, clock_time + 10);
    half = store(&w, CACHE_SUCCESS);
    assert_int_equal(half.timeouts, 0);
    store(&w, CACHE_BACKOFF);
    half.open_end = true;
    half.kind = CACHE_SUCCESS;
    half.bytes = (unsigned char *)"half";
    half.size = 4;
    assert_true(keep(&w, &half));
    assert_int_equal(half.expires, 0);
    assert_int_equal(store(&w, CACHE_BACKOFF).expires, clock_time + 20);
    end(&w);
}

/* Further tests of the plugin keep the verdict's date. */
static void replaced_with_its_date(void **state)
{
    struct world w;
    struct cached found;
    (void)state;
    begin(&w);
    const struct cached more = store(&w, CACHE_BACKOFF);
    clock_time += 9;
    assert_true(cache_replace(&w.context, &w.candidate, &more));
    assert_true(cache_find(&w.context, &w.candidate, &found));
    assert_int_equal(found.timeouts, 1);
    assert_int_equal(found.written, clock_time - 9);
    free(found.bytes);
    clock_time += 1;
    assert_false(is_there(&w));
    end(&w);
}

static void clock_that_is_set_back(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_BACKOFF);
    clock_time -= 1;
    assert_false(is_there(&w));
    /* An entry from a clock that was years ahead. */
    clock_time += 500000000;
    store(&w, CACHE_FAILURE);
    assert_true(is_there(&w));
    clock_time -= 500000000;
    assert_false(is_there(&w));
    struct cached odd = { .kind = CACHE_FAILURE, .written = 0, .expires = INT64_MAX };
    assert_false(cache_counts(&odd, clock_time)); /* longer than any writer says */
    end(&w);
}

/* ---- while a plugin is bound ---- */

/* Another thread or process that loads the same plugin. */
static struct candidate another(const struct world *w)
{
    struct candidate other = w->candidate;
    other.fd = other.probe_lock = other.bind_lock = -1;
    return other;
}

static void bound_plugin_has_no_verdict(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    bind_lock(&w.context, &w.candidate);
    assert_false(is_there(&w));
    bind_unlock(&w.context, &w.candidate, true);
    assert_true(is_there(&w));
    assert_int_equal(count_files(place), 1);
    bind_lock(&w.context, &w.candidate);
    bind_unlock(&w.context, &w.candidate, false);
    assert_false(is_there(&w));
    assert_int_equal(count_files(place), 0);
    end(&w);
}

/* The verdict reappears only after the last of them has succeeded. */
static void last_to_bind_shows_the_verdict(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    for (int i = 0; i < 2; i++) {
        struct candidate other = another(&w);
        struct candidate *first = i ? &other : &w.candidate;
        struct candidate *last = i ? &w.candidate : &other;
        bind_lock(&w.context, &w.candidate);
        bind_lock(&w.context, &other);
        bind_unlock(&w.context, first, true);
        assert_false(is_there(&w));
        bind_unlock(&w.context, last, true);
        assert_true(is_there(&w));
    }
    struct candidate other = another(&w);
    bind_lock(&w.context, &w.candidate);
    bind_lock(&w.context, &other);
    bind_unlock(&w.context, &w.candidate, false); /* it failed here ... */
    bind_unlock(&w.context, &other, true);        /* ... and worked there */
    assert_false(is_there(&w));
    assert_int_equal(count_files(place), 0);
    end(&w);
}

static void lock_and_die(struct world *w)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct candidate other = another(w);
        bind_lock(&w->context, &other);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The verdict stays hidden until the plugin is tried again, whatever other processes do. */
static void verdict_on_what_crashed_stays_hidden(void **state)
{
    struct world w;
    struct cached found;
    (void)state;
    begin(&w);
    const struct cached more = store(&w, CACHE_SUCCESS);
    bind_lock(&w.context, &w.candidate);
    lock_and_die(&w);
    bind_unlock(&w.context, &w.candidate, true);
    assert_false(is_there(&w));
    assert_true(cache_replace(&w.context, &w.candidate, &more));
    assert_false(is_there(&w));
    assert_true(cache_find_any(&w.context, &w.candidate, &found));
    free(found.bytes);
    store(&w, CACHE_SUCCESS);
    assert_true(is_there(&w));
    assert_int_equal(count_files(place), 1);
    end(&w);
}

/* A new verdict clears the marks of crashed processes, but not of running ones. */
static void new_verdict_is_shown_in_the_end(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    lock_and_die(&w);
    bind_lock(&w.context, &w.candidate);
    store(&w, CACHE_SUCCESS);
    assert_false(is_there(&w));
    bind_unlock(&w.context, &w.candidate, true);
    assert_true(is_there(&w));
    end(&w);
}

/* Binds many times. With `crash`, the process ends while binding, which hides the verdict;
 * otherwise it is visible in the end. */
static void bind_many(struct world *w, bool crash)
{
    struct candidate other = another(w);
    for (int i = 0; i < 500; i++) {
        bind_lock(&w->context, &other);
        if (is_there(w))
            _exit(1);
        bind_unlock(&w->context, &other, true);
    }
    if (crash)
        bind_lock(&w->context, &other);
    _exit(other.bind_lock >= 0 ? !crash : crash);
}

/* One process tries a plugin, and another one tries another plugin. */
static void one_tries_a_plugin(void **state)
{
    struct world w;
    char key[] = "of another plugin";
    (void)state;
    begin(&w);
    struct candidate other = another(&w), third = another(&w);
    third.key = key;
    assert_true(probe_lock(&w.context, &w.candidate));
    assert_false(probe_lock(&w.context, &other));
    assert_true(probe_lock(&w.context, &third));
    probe_unlock(&w.candidate);
    assert_true(probe_lock(&w.context, &other));
    probe_unlock(&other);
    probe_unlock(&third);
    assert_int_equal(count_files(place), 0);
    end(&w);
}

/* A crash while another plugin is bound hides only that plugin's verdict. */
static void rows_of_the_dead_are_left_alone(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    lock_and_die(&w);
    set(&w, SETTING_threads, "2");
    look(&w);
    store(&w, CACHE_SUCCESS);
    bind_lock(&w.context, &w.candidate);
    assert_false(is_there(&w));
    bind_unlock(&w.context, &w.candidate, true);
    assert_true(is_there(&w));
    set(&w, SETTING_threads, "");
    look(&w);
    assert_false(is_there(&w));
    end(&w);
}

/* All rows belong to processes that have ended, with keys that nobody asks for any more. */
static void rows_of_the_dead_are_taken_in_the_end(void **state)
{
    struct world w;
    uint64_t rows[LOCKS_MAX];
    char path[4300];
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    for (size_t i = 0; i < LOCKS_MAX; i++)
        rows[i] = i + 1;
    snprintf(path, sizeof path, "%s/" LOCKS_FILE, place);
    write_file(path, rows, sizeof rows);
    bind_lock(&w.context, &w.candidate);
    assert_true(w.candidate.bind_lock >= 0);
    assert_false(is_there(&w));
    bind_unlock(&w.context, &w.candidate, true);
    assert_true(is_there(&w));
    end(&w);
}

static void many_bind_at_once(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    for (int round = 0; round < 2; round++) {
        pid_t children[4];
        store(&w, CACHE_SUCCESS);
        for (int i = 0; i < 4; i++)
            if ((children[i] = fork()) == 0)
                bind_many(&w, round && i == 2);
        for (int i = 0; i < 4; i++) {
            int status;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(is_there(&w), !round);
    }
    end(&w);
}

/* ---- limits, and many processes ---- */

static void old_entries_make_room(void **state)
{
    struct world w;
    char text[16], mine[4300];
    (void)state;
    begin(&w);
    store(&w, CACHE_SUCCESS);
    snprintf(mine, sizeof mine, "%s/notes.txt", place);
    write_file(mine, "mine", 4);
    for (int i = 1; i <= CACHE_FILES_MAX + 10; i++) {
        snprintf(text, sizeof text, "%d", i);
        set(&w, SETTING_threads, text);
        look(&w);
        store(&w, CACHE_SUCCESS);
        assert_true(is_there(&w));
    }
    assert_int_equal(count_files(place), CACHE_FILES_MAX + 1);
    assert_int_equal(access(mine, F_OK), 0);
    set(&w, SETTING_threads, "1");
    look(&w);
    assert_false(is_there(&w));
    end(&w);
}

static void too_large_is_not_kept(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    struct cached verdict = { .size = CACHE_ENTRY_MAX, .outcome = "ok" };
    verdict.bytes = calloc(1, verdict.size);
    keep(&w, &verdict);
    assert_false(is_there(&w));
    assert_int_equal(count_files(place), 0);
    assert_int_equal(told, 1);
    free(verdict.bytes);
    end(&w);
}

/* Two processes write verdicts of different lengths, over and over, while two others read. A reader
 * sees one of the verdicts, and never misses one once the first was written. */
static void write_many(struct world *w, unsigned char byte, size_t size)
{
    unsigned char *bytes = malloc(size);
    memset(bytes, byte, size);
    struct cached verdict = { .bytes = bytes, .size = size, .outcome = "ok" };
    for (int i = 0; i < 100; i++)
        keep(w, &verdict);
    _exit(told ? 2 : 0);
}

static void read_many(struct world *w)
{
    for (int i = 0; i < 2000; i++) {
        struct cached found;
        if (!cache_find(&w->context, &w->candidate, &found))
            _exit(1);
        const size_t size = found.bytes[0] == 'a' ? 100000 : 3;
        bool whole = found.size == size;
        for (size_t j = 0; j < found.size; j++)
            whole = whole && found.bytes[j] == found.bytes[0];
        free(found.bytes);
        if (!whole)
            _exit(3);
    }
    _exit(0);
}

static void two_writers_and_readers(void **state)
{
    struct world w;
    pid_t children[4];
    (void)state;
    begin(&w);
    struct cached first = { .bytes = (unsigned char *)"bbb", .size = 3, .outcome = "ok" };
    keep(&w, &first);
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0 && i < 2)
            write_many(&w, i ? 'a' : 'b', i ? 100000 : 3);
        if (children[i] == 0)
            read_many(&w);
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(place), 1);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_expire),
        cmocka_unit_test(timeouts_wait_longer_each_time),
        cmocka_unit_test(failures_of_one_try),
        cmocka_unit_test(success_with_an_open_end),
        cmocka_unit_test(replaced_with_its_date),
        cmocka_unit_test(clock_that_is_set_back),
        cmocka_unit_test(bound_plugin_has_no_verdict),
        cmocka_unit_test(last_to_bind_shows_the_verdict),
        cmocka_unit_test(verdict_on_what_crashed_stays_hidden),
        cmocka_unit_test(new_verdict_is_shown_in_the_end),
        cmocka_unit_test(one_tries_a_plugin),
        cmocka_unit_test(rows_of_the_dead_are_left_alone),
        cmocka_unit_test(rows_of_the_dead_are_taken_in_the_end),
        cmocka_unit_test(many_bind_at_once),
        cmocka_unit_test(old_entries_make_room),
        cmocka_unit_test(too_large_is_not_kept),
        cmocka_unit_test(two_writers_and_readers),
    };
    return cmocka_run_group_tests_name("cache life", tests, lair_open, lair_close);
}
