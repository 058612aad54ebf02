/* SPDX-License-Identifier: MIT */
/* test_recall.c - a second start tries no plugin again whose verdict is known, until
 * something changes that it depends on; failures are tried again in time. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The clock that the library sees. */
static time_t clock_time = 1000000;

time_t time(time_t *where)
{
    if (where)
        *where = clock_time;
    return clock_time;
}

static char directory[32]; /* in the lair */

/* One candidate of the report of one start. */
struct seen {
    char state[16], reason[32], message[512];
    bool recalled;
    json_int_t tried, retry; /* -1: null */
};

static json_int_t number(const json_t *entry, const char *key)
{
    const json_t *value = json_object_get(entry, key);
    assert_non_null(value);
    return json_is_null(value) ? -1 : json_integer_value(value);
}

static struct hw_context *open_with(struct hw_options options)
{
    struct hw_context *context;
    options.flags = HW_OPEN_ANYWAY;
    assert_int_equal(open_on(lair("%s", directory), &options, &context), HW_OK);
    return context;
}

/* Closes the context. */
static struct seen seen_in(struct hw_context *context, const char *name)
{
    struct seen seen;
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("%s/hw_%s.so", directory, name));
    assert_non_null(entry);
    snprintf(seen.state, sizeof seen.state, "%s", text_of(entry, "state"));
    snprintf(seen.reason, sizeof seen.reason, "%s", text_of(entry, "reason"));
    snprintf(seen.message, sizeof seen.message, "%s", text_of(entry, "message"));
    seen.recalled = json_is_true(json_object_get(entry, "recalled"));
    seen.tried = number(entry, "tried");
    seen.retry = number(entry, "retry");
    json_decref(json);
    hw_close(context);
    return seen;
}

static struct seen start_with(const char *name, struct hw_options options)
{
    return seen_in(open_with(options), name);
}

static const struct hw_options usual = { .probe = "child", .probe_timeout = "3" };

static struct seen start(const char *name)
{
    return start_with(name, usual);
}

/* The device is used as well. */
static struct seen start_and_use(const char *name)
{
    struct hw_context *context = open_with(usual);
    struct hw_queue *queue;
    hw_queue_open(hw_device_at(context, 0), NULL, &queue);
    return seen_in(context, name);
}

/* The plugin alone in a new directory; nothing is known about it. New, because this process
 * keeps the code of what it has loaded. */
static void put(const char *name)
{
    static int number;
    char command[4200];
    snprintf(directory, sizeof directory, "plugins-%d", number++);
    snprintf(command, sizeof command, "rm -rf '%s'", lair(".cache"));
    assert_int_equal(system(command), 0);
    make_directory(lair("%s", directory));
    put_plugin(lair("%s", directory), name);
    clock_time = 1000000;
}

/* How often tally was tried since the last call. It is never bound here unless it is used. */
static unsigned tried(void)
{
    const struct tally tally = tallied();
    assert_int_equal(tally.bound, 0);
    return tally.tried;
}

static void put_tally(void)
{
    put("tally");
    write_file(DRIVER, "1\n", 2);
    tally_begin();
}

static void expect_retry(struct seen seen, bool recalled, json_int_t at, json_int_t retry)
{
    assert_int_equal(seen.recalled, recalled);
    assert_int_equal(seen.tried, at);
    /* The time that the probe took counts, too. */
    assert_in_range((uintmax_t)seen.retry, (uintmax_t)retry,
                    (uintmax_t)retry + (retry > 0 ? 4 : 0));
}

/* ---- success ---- */

static void second_start_tries_nothing(void **state)
{
    (void)state;
    put_tally();
    struct seen seen = start("tally");
    expect_retry(seen, false, 1000000, -1);
    assert_int_equal(tried(), 1);
    clock_time += 100000000;
    for (int i = 0; i < 3; i++) {
        seen = start("tally");
        expect_retry(seen, true, 1000000, -1);
        assert_string_equal(seen.state, "used");
    }
    assert_int_equal(tried(), 0);
}

/* A process waits as long for another one that tries the same plugin. */
static const struct hw_options patient = { .probe = "child", .probe_timeout = "600" };

/* Starts four at once, which all find the plugin. */
static void start_together(void)
{
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0)
            _exit(strcmp(start_with("tally", patient).state, "used") ? 1 : 0);
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
}

static void starts_at_once_try_once(void **state)
{
    (void)state;
    put_tally();
    setenv("HW_TEST_TALLY_SLOW", "1", 1);
    start_together();
    unsetenv("HW_TEST_TALLY_SLOW");
    assert_int_equal(tried(), 1);
    assert_true(start_with("tally", patient).recalled);
}

/* A process that locks the plugin and does not end: the others wait no longer than for a plugin
 * that hangs. */
static void endless_lock_is_not_waited_for(void **state)
{
    glob_t found;
    (void)state;
    put_tally();
    start("tally");
    assert_int_equal(tried(), 1);
    assert_int_equal(glob(lair(".cache/hw/verdicts.d/tally-*"), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    const char *digits = strrchr(found.gl_pathv[0], '-') + 1;
    struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    range.l_start = (off_t)(INT64_C(1) << 62 | (int64_t)(strtoull(digits, NULL, 16) >> 2));
    const int locks = open(lair(".cache/hw/verdicts.d/.locks"), O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(locks, F_OFD_SETLK, &range), 0);
    assert_int_equal(unlink(found.gl_pathv[0]), 0);
    globfree(&found);
    assert_false(start("tally").recalled);
    assert_int_equal(tried(), 1);
    close(locks);
}

static void changes_are_noticed(void **state)
{
    const struct timespec times[2] = { { 1, 1 }, { 1, 1 } };
    (void)state;
    put_tally();
    start("tally");
    assert_int_equal(tried(), 1);
    utimensat(AT_FDCWD, lair("%s/hw_tally.so", directory), times, 0);
    assert_false(start("tally").recalled);
    assert_int_equal(tried(), 1);
    write_file(DRIVER, "2\n", 2);
    assert_false(start("tally").recalled);
    assert_int_equal(tried(), 1);
    setenv("HW_TEST_SEEN_DEVICES", "0", 1);
    assert_false(start("tally").recalled);
    setenv("HW_TEST_SEEN_DEVICES", "1", 1);
    assert_false(start("tally").recalled);
    assert_int_equal(tried(), 2);
    setenv("HW_TEST_SEEN_DEVICES", "0", 1);
    assert_true(start("tally").recalled); /* both are known */
    unsetenv("HW_TEST_SEEN_DEVICES");
    assert_true(start("tally").recalled);
    struct hw_options options = { .probe = "child", .probe_timeout = "3", .threads = "3" };
    assert_false(start_with("tally", options).recalled);
    assert_int_equal(tried(), 1);
    /* It is not told which row to use, so that the verdict does not depend on it. */
    options = (struct hw_options){ .probe = "child", .probe_timeout = "3", .kernel = "x" };
    assert_true(start_with("tally", options).recalled);
}

static void damaged_verdict_is_made_again(void **state)
{
    char command[4200];
    (void)state;
    put_tally();
    start("tally");
    snprintf(command, sizeof command, "for f in %s/*; do echo x >>\"$f\"; done",
             lair(".cache/hw/verdicts.d"));
    assert_int_equal(system(command), 0);
    assert_false(start("tally").recalled);
    assert_true(start("tally").recalled);
    assert_int_equal(tried(), 2);
}

static void without_a_cache_each_start_tries(void **state)
{
    const struct hw_options off = { .probe = "child", .cache_dir = "off" };
    (void)state;
    put_tally();
    expect_retry(start_with("tally", off), false, 1000000, 1000000);
    expect_retry(start_with("tally", off), false, 1000000, 1000000);
    assert_int_equal(tried(), 2);
    assert_int_not_equal(access(lair(".cache"), F_OK), 0);
}

/* The known verdict does not hold in this process: the next start tries again. */
static void wrong_verdict_is_forgotten(void **state)
{
    static const struct {
        const char *bind, *reason;
    } rows[] = { { "fail", "open-failed" },
                 { "more", "other-devices" },
                 { "other", "other-devices" } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_tally();
        start("tally");
        setenv("HW_TEST_TALLY_BIND", rows[i].bind, 1);
        struct seen seen = start("tally"); /* nothing is known of that yet */
        assert_string_equal(seen.reason, "");
        assert_int_equal(tried(), 1);
        seen = start_and_use("tally");
        assert_true(seen.recalled);
        assert_string_equal(seen.reason, rows[i].reason);
        assert_string_equal(seen.state, "stopped");
        assert_int_equal(tallied().bound, 1);
        unsetenv("HW_TEST_TALLY_BIND");
        assert_false(start("tally").recalled);
        assert_int_equal(tried(), 1);
    }
}

/* It ends the process that has its verdict from memory: nothing is known about it any more. */
static void crash_of_the_application_is_remembered(void **state)
{
    int status;
    (void)state;
    put_tally();
    start("tally");
    assert_true(start("tally").recalled);
    assert_int_equal(tried(), 1);
    setenv("HW_TEST_TALLY_BIND", "crash", 1);
    const pid_t child = fork();
    if (child == 0) {
        start_and_use("tally");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 86);
    assert_int_equal(tallied().bound, 1);
    unsetenv("HW_TEST_TALLY_BIND");
    assert_false(start("tally").recalled);
    assert_true(start("tally").recalled);
    assert_int_equal(tried(), 1);
}

/* ---- failures ---- */

static void crash_is_tried_again_after_a_minute(void **state)
{
    (void)state;
    put("ends_crash");
    struct seen seen = start("ends_crash");
    expect_retry(seen, false, 1000000, 1000060);
    assert_null(strstr(seen.message, "tried again"));
    clock_time += 12;
    seen = start("ends_crash");
    expect_retry(seen, true, 1000000, 1000060);
    assert_string_equal(seen.reason, "crash");
    assert_non_null(strstr(seen.message, "segmentation fault"));
    assert_non_null(strstr(seen.message, "(tried 12 s ago; it is tried again in 48 s)"));
    clock_time += 48;
    expect_retry(start("ends_crash"), false, 1000060, 1000120);
    clock_time -= 30; /* the clock is set back */
    expect_retry(start("ends_crash"), false, 1000030, 1000090);
}

static void hang_is_tried_again_later_each_time(void **state)
{
    (void)state;
    put("ends_hang");
    expect_retry(start("ends_hang"), false, 1000000, 1000010);
    clock_time += 9;
    expect_retry(start("ends_hang"), true, 1000000, 1000010);
    clock_time += 5;
    expect_retry(start("ends_hang"), false, 1000014, 1000034);
    clock_time += 19;
    expect_retry(start("ends_hang"), true, 1000014, 1000034);
}

/* A device that cannot be opened may be busy. */
static void busy_device_is_tried_again(void **state)
{
    (void)state;
    put("device_fails");
    struct seen seen = start("device_fails");
    assert_string_equal(seen.state, "used");
    expect_retry(seen, false, 1000000, 1000060);
    expect_retry(start("device_fails"), true, 1000000, 1000060);
    clock_time += 60;
    expect_retry(start("device_fails"), false, 1000060, 1000120);
}

/* A probe in the process leaves no verdict, and asks for none. */
static void in_process_has_no_cache(void **state)
{
    const struct hw_options here = { .probe = "inproc" };
    (void)state;
    put_tally();
    expect_retry(start_with("tally", here), false, -1, -1);
    assert_int_not_equal(access(lair(".cache"), F_OK), 0);
    put("open_fails");
    assert_string_equal(start("open_fails").reason, "open-failed");
    assert_true(start("open_fails").recalled);
    expect_retry(start_with("open_fails", here), false, -1, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_start_tries_nothing),
        cmocka_unit_test(starts_at_once_try_once),
        cmocka_unit_test(endless_lock_is_not_waited_for),
        cmocka_unit_test(changes_are_noticed),
        cmocka_unit_test(damaged_verdict_is_made_again),
        cmocka_unit_test(without_a_cache_each_start_tries),
        cmocka_unit_test(wrong_verdict_is_forgotten),
        cmocka_unit_test(crash_of_the_application_is_remembered),
        cmocka_unit_test(crash_is_tried_again_after_a_minute),
        cmocka_unit_test(hang_is_tried_again_later_each_time),
        cmocka_unit_test(busy_device_is_tried_again),
        cmocka_unit_test(in_process_has_no_cache),
    };
    return cmocka_run_group_tests_name("cache recall", tests, lair_open, lair_close);
}
