/* SPDX-License-Identifier: MIT */
/* test_failures.c - opening a context while the system fails: each allocation once, and
 * each file call once with each of several errors. hw_open() must always return, the
 * report must be valid JSON, and nothing may leak. The linker puts the functions below
 * in front of the system's (--wrap), for the library's objects alone. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_CALLS 3000

/* The n-th call from here fails; 0: no call fails. */
static struct {
    unsigned left;
    int error; /* 0: allocations fail; else file calls fail with this error */
} failing;

static bool fails(bool allocation)
{
    if (allocation != (failing.error == 0) || failing.left == 0 || --failing.left > 0)
        return false;
    errno = allocation ? ENOMEM : failing.error;
    return true;
}

/* W(result, failure, name, parameters, arguments, is it an allocation) */
#define WRAPPED(W)                                                                         \
    W(void *, NULL, malloc, (size_t n), (n), true)                                         \
    W(void *, NULL, calloc, (size_t n, size_t size), (n, size), true)                      \
    W(void *, NULL, realloc, (void *old, size_t n), (old, n), true)                        \
    W(char *, NULL, strdup, (const char *s), (s), true)                                    \
    W(char *, NULL, strndup, (const char *s, size_t n), (s, n), true)                      \
    W(DIR *, NULL, opendir, (const char *path), (path), false)                             \
    W(ssize_t, -1, readlink, (const char *path, char *to, size_t n), (path, to, n), false) \
    W(ssize_t, -1, pread64, (int fd, void *to, size_t n, off_t at), (fd, to, n, at),       \
      false)                                                                               \
    W(ssize_t, -1, read, (int fd, void *to, size_t n), (fd, to, n), false)                 \
    W(int, -1, open64, (const char *path, int flags), (path, flags), false)                \
    W(int, -1, fstat64, (int fd, struct stat *info), (fd, info), false)                    \
    W(int, -1, lstat64, (const char *path, struct stat *info), (path, info), false)        \
    W(int, -1, stat64, (const char *path, struct stat *info), (path, info), false)

#define W(result, failure, name, parameters, arguments, allocation)                        \
    result __real_##name parameters;                                                       \
    result __wrap_##name parameters;                                                       \
    result __wrap_##name parameters                                                        \
    {                                                                                      \
        return fails(allocation) ? failure : __real_##name arguments;                      \
    }
WRAPPED(W)
#undef W

/* There is none beside this program. */
char *__wrap_helper_program(const char *name, bool elevated);
char *__wrap_helper_program(const char *name, bool elevated)
{
    (void)name, (void)elevated;
    return strdup(PROBE);
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* After any failure, no intact file is reported as damaged, and no file that failed for
 * lack of resources is reported as missing. */
static void check_reasons(const json_t *json, int error)
{
    static const char *const own[] = { "hw_text.so", "hw_needs_missing.so" };
    bool no_room = error == 0 || error == EMFILE || error == ENOMEM;
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(json, "candidates"), i, entry) {
        const char *file = strrchr(text_of(entry, "file"), '/') + 1;
        const char *reason = text_of(entry, "reason");
        bool expected = strcmp(file, own[0]) == 0 || strcmp(file, own[1]) == 0;
        if (*reason && !*text_of(entry, "message"))
            fail_msg("%s: %s without a message", file, reason);
        if (no_room && !expected &&
            (strcmp(reason, "malformed") == 0 || strcmp(reason, "needs-library") == 0))
            fail_msg("%s: %s: %s", file, reason, text_of(entry, "message"));
    }
}

/* Opens once while the n-th call fails; returns whether there were n calls. */
static bool open_with(unsigned n, int error, uint32_t flags)
{
    struct hw_context *context = NULL;
    struct hw_options options = { .flags = flags,
                                  .config = lair("hw.conf"),
                                  .backends = "*,good?,!nothing?",
                                  .disable = "unicorn" };
    failing.left = n;
    failing.error = error;
    enum hw_status status = open_on(lair("plugins"), &options, &context);
    bool reached = failing.left == 0;
    failing.left = 0;
    assert_int_equal(status == HW_OK, context != NULL);
    if (status)
        assert_true(hw_message()[0] != '\0');
    if (context) {
        json_t *json = report(context);
        check_reasons(json, error);
        json_decref(json);
    }
    hw_close(context);
    return reached;
}

static unsigned open_with_each(int error, uint32_t flags)
{
    unsigned n = 1, before = count_descriptors();
    while (open_with(n, error, flags))
        assert_true(++n < MOST_CALLS);
    assert_int_equal(count_descriptors(), before);
    return n - 1;
}

static void test_allocations(void **state)
{
    (void)state;
    unsigned calls = open_with_each(0, 0);
    print_message("# each of %u allocations failed once\n", calls);
    assert_true(calls > 50);
    assert_true(open_with_each(0, HW_OPEN_ANYWAY) > 50);
}

static void test_calls(void **state)
{
    static const int errors[] = { EACCES, ENOENT, EIO,   EMFILE,
                                  EINTR,  ENOMEM, ELOOP, ENAMETOOLONG };
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        unsigned calls = open_with_each(errors[i], i % 2 ? HW_OPEN_ANYWAY : 0);
        print_message("# each of %u calls failed once with %s\n", calls,
                      strerror(errors[i]));
        assert_true(calls > 30);
    }
}

/* First use of a device while the n-th allocation fails; returns whether there were n. Whatever
 * the failure was, the next use works. */
static bool use_with(unsigned n, unsigned *refused)
{
    const struct hw_options options = { .probe = "child", .backends = "good" };
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
    assert_int_equal(open_on(lair("few"), &options, &context), HW_OK);
    assert_int_equal(hw_device_find(context, "good", &device), HW_OK);
    failing.left = n;
    failing.error = 0;
    const enum hw_status status = hw_queue_open(device, NULL, &queue);
    const bool reached = failing.left == 0;
    failing.left = 0;
    if (status != HW_OK && status != HW_NO_MEMORY)
        fail_msg("allocation %u: %s: %s", n, hw_status_name((int32_t)status), hw_message());
    *refused += status == HW_NO_MEMORY;
    const enum hw_status next = hw_queue_open(device, NULL, &queue);
    if (next)
        fail_msg("after allocation %u: %s: %s", n, hw_status_name((int32_t)next),
                 hw_message());
    hw_close(context);
    return reached;
}

/* An emulator of one process has no hw-probe. */
static void test_first_use(void **state)
{
    unsigned n = 1, refused = 0, before;
    (void)state;
    if (!getenv("HW_TEST_CHILD"))
        skip();
    before = count_descriptors();
    while (use_with(n, &refused))
        assert_true(++n < MOST_CALLS);
    assert_int_equal(count_descriptors(), before);
    print_message("# each of %u allocations failed once, %u uses with them\n", n - 1,
                  refused);
    assert_true(refused > 8);
}

/* ---- an op that was left out of the admission test ---- */

enum { COUNT = 4 };

static int64_t cases_tested(struct hw_context *context)
{
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("later/hw_ops_later_right.so"));
    const int64_t tested =
        json_integer_value(json_object_get(json_object_get(entry, "admission"), "tested"));
    json_decref(json);
    return tested;
}

/* An op is computed for the first time while the n-th allocation, or file call, fails; returns
 * whether there were n. Whether it could be tested or not, the result is right. */
static bool compute_with(unsigned n, int error, unsigned *untested)
{
    const struct hw_options options = { .probe = "child", .probe_timeout = "2" };
    float x[COUNT] = { 1, 2, 3, 4 }, y[COUNT] = { 0 };
    const struct hw_scale op = { .x = hw_host_1d(x, HW_F32, COUNT),
                                 .y = hw_host_1d(y, HW_F32, COUNT),
                                 .scale = 2 };
    struct hw_context *context;
    struct hw_queue *queue;
    assert_int_equal(open_on(lair("later"), &options, &context), HW_OK);
    assert_int_equal(hw_queue_open(hw_device_at(context, 0), NULL, &queue), HW_OK);
    const int64_t before = cases_tested(context);
    failing.left = n;
    failing.error = error;
    const enum hw_status status = hw_scale(queue, &op);
    const bool reached = failing.left == 0;
    failing.left = 0;
    if (status)
        fail_msg("failure %u: %s", n, hw_message());
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == 2 * x[i]);
    *untested += cases_tested(context) == before;
    hw_close(context);
    return reached;
}

/* Each time from the verdict as it is after the first start; every other failure, for each takes
 * two processes. */
static void test_op_left_out(void **state)
{
    static const int errors[] = { 0, EMFILE };
    struct hw_context *context;
    glob_t found;
    size_t size;
    (void)state;
    if (!getenv("HW_TEST_CHILD"))
        skip();
    make_directory(lair("later"));
    put_plugin(lair("later"), "ops_later_right");
    setenv("HW_TEST_OPENED", lair("later.runs"), 1);
    const struct hw_options options = { .probe = "child", .probe_timeout = "2" };
    assert_int_equal(open_on(lair("later"), &options, &context), HW_OK);
    hw_close(context);
    assert_int_equal(glob(lair(".cache/hw/verdicts.d/ops_later_right-*"), 0, NULL, &found),
                     0);
    unsigned char *verdict = read_file(found.gl_pathv[0], &size);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        unsigned n = 1, untested = 0, before = count_descriptors();
        while (compute_with(n, errors[i], &untested)) {
            write_file(found.gl_pathv[0], verdict, size);
            assert_true((n += 2) < MOST_CALLS);
        }
        write_file(found.gl_pathv[0], verdict, size);
        assert_int_equal(count_descriptors(), before);
        print_message("# every other one of %u %s failed once, %u ops untested with them\n",
                      n - 1, errors[i] ? "calls" : "allocations", untested);
        assert_true(untested > 8 && untested < n);
    }
    free(verdict);
    globfree(&found);
}

static bool has(struct hw_context *context, const char *name)
{
    struct hw_device *device;
    return hw_device_find(context, name, &device) == HW_OK;
}

/* hw_rescan() finds a plugin while the n-th allocation, or file call, fails; returns whether there
 * were n. If it says that it failed, nothing has changed; and the next one finds the plugin. */
static bool rescan_with(unsigned n, int error, const char *probe, unsigned *refused)
{
    const struct hw_options options = { .probe = probe };
    struct hw_context *context;
    failing.left = 0;
    assert_int_equal(rename(lair("few/hw_view.so"), lair("hw_view.so")), 0);
    assert_int_equal(open_on(lair("few"), &options, &context), HW_OK);
    assert_int_equal(rename(lair("hw_view.so"), lair("few/hw_view.so")), 0);
    struct hw_device *good = hw_device_at(context, 0);
    failing.left = n;
    failing.error = error;
    const enum hw_status status = hw_rescan(context);
    const bool reached = failing.left == 0;
    failing.left = 0;
    if (status && status != HW_NO_MEMORY)
        fail_msg("failure %u: %s: %s", n, hw_status_name((int32_t)status), hw_message());
    if (status && hw_device_count(context) != 1)
        fail_msg("failure %u: HW_NO_MEMORY, but there are new devices", n);
    if (!status && error == 0 && !has(context, "view:1"))
        fail_msg("allocation %u: HW_OK, but nothing was found: %s", n, hw_message());
    *refused += status == HW_NO_MEMORY;
    assert_int_equal(hw_rescan(context), HW_OK);
    assert_ptr_equal(hw_device_at(context, 0), good);
    if (!has(context, "view:1") || hw_device_count(context) != 3)
        fail_msg("after failure %u: nothing was found: %s", n, hw_message());
    json_decref(report(context));
    hw_close(context);
    return reached;
}

static void test_rescan(void **state)
{
    static const struct {
        int error;
        bool child;
    } rows[] = { { 0, false }, { 0, true }, { EMFILE, false }, { ENOMEM, false } };
    (void)state;
    put_plugin(lair("few"), "view");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int error = rows[i].error;
        const bool child = rows[i].child;
        unsigned n = 1, refused = 0, before = count_descriptors();
        if (child && !getenv("HW_TEST_CHILD"))
            continue;
        while (rescan_with(n, error, child ? "child" : "inproc", &refused))
            assert_true(++n < MOST_CALLS);
        assert_int_equal(count_descriptors(), before);
        print_message("# each of %u %s failed once, %u hw_rescan() with them\n", n - 1,
                      error ? "calls" : "allocations", refused);
        assert_true(refused > (error ? 2 : 20));
    }
}

static int make_plugins(void **state)
{
    static const char *const names[] = { "good",         "zoo",   "count_million",
                                         "needs_one_of", "view",  "needs_missing",
                                         "open_fails",   "beside" };
    static const char text[] = "# settings\nthreads = 2\nlog = off\n";
    if (lair_open(state))
        return -1;
    make_directory(lair("few"));
    put_plugin(lair("few"), "good");
    make_directory(lair("plugins"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_plugin(lair("plugins"), names[i]);
    assert_int_equal(symlink("hw_plain.so", lair("plugins/libbeside.so.1")), 0);
    put_plugin(lair("plugins"), "plain");
    assert_int_equal(symlink("hw_good.so", lair("plugins/hw_link.so")), 0);
    write_file(lair("plugins/hw_text.so"), text, sizeof text - 1);
    write_file(lair("hw.conf"), text, sizeof text - 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_allocations),
                                        cmocka_unit_test(test_calls),
                                        cmocka_unit_test(test_first_use),
                                        cmocka_unit_test(test_op_left_out),
                                        cmocka_unit_test(test_rescan) };
    return cmocka_run_group_tests_name("failures", tests, make_plugins, lair_close);
}
