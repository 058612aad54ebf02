/* SPDX-License-Identifier: MIT */
/* test_probe.c - plugins that end, block or damage the process in which they are started: the
 * probe in a process of its own gives each its reason, and the application is unharmed. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct hw_options in_child = { .probe = "child",
                                            .probe_timeout = "60",
                                            .cache_dir = "off" };

/* ---- the application ---- */

struct host {
    unsigned descriptors;
    char directory[4096];
    sigset_t mask;
    struct sigaction actions[32];
};

static void look(struct host *host)
{
    memset(host, 0, sizeof *host);
    for (int fd = 0; fd < 1024; fd++)
        host->descriptors += fcntl(fd, F_GETFD) >= 0;
    assert_non_null(getcwd(host->directory, sizeof host->directory));
    sigprocmask(SIG_SETMASK, NULL, &host->mask);
    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &host->actions[i]);
}

static void same_host(const struct host *before)
{
    struct host now;
    look(&now);
    assert_int_equal(before->descriptors, now.descriptors);
    assert_string_equal(before->directory, now.directory);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(sigismember(&before->mask, i), sigismember(&now.mask, i));
        assert_ptr_equal(before->actions[i].sa_handler, now.actions[i].sa_handler);
    }
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- starting hw-probe, with accidents ---- */

static struct {
    int error;       /* of starting it */
    char *stamp;     /* of another build */
    pid_t bystander; /* a child that another thread forks meanwhile; 1: one is wanted */
} accident;

int posix_spawn(pid_t *restrict id, const char *restrict path,
                const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const arguments[],
                char *const variables[])
{
    static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
    char *copy[64] = { NULL };
    *(void **)&next = dlsym(RTLD_NEXT, "posix_spawn");
    if (accident.error)
        return accident.error;
    for (int i = 0; i < 63 && arguments[i]; i++)
        copy[i] = arguments[i];
    if (accident.stamp)
        copy[1] = accident.stamp;
    const int error = next(id, path, actions, attributes, copy, variables);
    if (accident.bystander) {
        const pid_t child = fork();
        if (child == 0)
            for (;;)
                pause();
        accident.bystander = child;
    }
    return error;
}

static void expect_accident(const char *reason, const char *words, const char *remedy)
{
    struct hw_context *context;
    struct hw_options options = in_child;
    options.flags = HW_OPEN_ANYWAY;
    assert_int_equal(open_on(lair("good"), &options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("good/hw_good.so"));
    assert_string_equal(text_of(entry, "reason"), reason);
    assert_non_null(strstr(text_of(entry, "message"), words));
    assert_non_null(strstr(text_of(entry, "remedy"), remedy));
    /* Tried now, and at the next start. */
    assert_true(json_integer_value(json_object_get(entry, "tried")) > 0);
    assert_int_equal(json_integer_value(json_object_get(entry, "tried")),
                     json_integer_value(json_object_get(entry, "retry")));
    json_decref(json);
    hw_close(context);
}

/* ---- the tests ---- */

/* A device that cannot be opened is listed, and not selected; the other one is used. */
static void test_device(void **state)
{
    struct hw_context *context;
    (void)state;
    make_directory(lair("device"));
    put_plugin(lair("device"), "device_fails");
    assert_int_equal(open_on(lair("device"), &in_child, &context), HW_OK);
    assert_int_equal(hw_device_count(context), 1);
    json_t *json = report(context);
    const json_t *second = json_array_get(json_object_get(json, "devices"), 1);
    assert_string_equal(text_of(second, "name"), "device_fails:1");
    assert_true(json_is_false(json_object_get(second, "selected")));
    assert_non_null(strstr(text_of(second, "why"), "it is used by another program"));
    json_decref(json);
    hw_close(context);
    struct hw_options options = in_child;
    options.backends = "device_fails:1";
    assert_int_equal(open_on(lair("device"), &options, &context), HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "it is used by another program"));
}

static void no_op(int number)
{
    (void)number;
}

static void open_good(void)
{
    struct host host;
    struct hw_context *context;
    look(&host);
    assert_int_equal(open_on(lair("good"), &in_child, &context), HW_OK);
    hw_close(context);
    same_host(&host);
}

/* The application ignores SIGCHLD, or blocks all signals, or handles them. */
static void test_signals(void **state)
{
    struct sigaction action = { .sa_handler = SIG_IGN }, before;
    sigset_t all, mask;
    (void)state;
    make_directory(lair("good"));
    put_plugin(lair("good"), "good");
    sigaction(SIGCHLD, &action, &before);
    open_good();
    action.sa_handler = no_op;
    sigaction(SIGCHLD, &action, NULL);
    open_good();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    open_good();
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGCHLD, &before, NULL);
}

/* The application has closed its standard files, so that other files get their numbers. */
static void test_no_standard_files(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        struct hw_context *context;
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        const enum hw_status status = open_on(lair("good"), &in_child, &context);
        _exit(status ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The library was upgraded while the application runs. */
static void test_other_build(void **state)
{
    static char stamp[] = "0.0.0";
    (void)state;
    accident.stamp = stamp;
    expect_accident("no-helper", "another build", "Restart the program");
    accident.stamp = NULL;
}

static void test_shortage(void **state)
{
    (void)state;
    accident.error = EAGAIN;
    expect_accident("no-memory", strerror(EAGAIN), "");
    accident.error = ENOENT;
    expect_accident("no-helper", strerror(ENOENT), "HW_PROBE=inproc");
    accident.error = 0;
}

static void expect_bundled(const char *reason)
{
    struct hw_context *context;
    struct hw_options options = in_child;
    options.flags = HW_OPEN_ANYWAY;
    assert_int_equal(open_on(lair("bundled"), &options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("bundled/hw_needs_bundled.so"));
    assert_string_equal(text_of(entry, "reason"), reason);
    assert_true(!*reason || strstr(text_of(entry, "remedy"), "HW_PROBE=inproc"));
    json_decref(json);
    hw_close(context);
}

/* The application has a library by its path, which the system would not find: hw-probe takes
 * the same, if others cannot write to it. */
static void test_bundled(void **state)
{
    size_t size;
    (void)state;
    make_directory(lair("bundled"));
    make_directory(lair("vendor"));
    put_plugin(lair("bundled"), "needs_bundled");
    unsigned char *bytes = read_file(FIXTURES "/libhw_bundled.so.1", &size);
    write_file(lair("vendor/libhw_bundled.so.1"), bytes, size);
    free(bytes);
    void *library = dlopen(lair("vendor/libhw_bundled.so.1"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    assert_int_equal(chmod(lair("vendor/libhw_bundled.so.1"), 0666), 0);
    expect_bundled("needs-library");
    assert_int_equal(chmod(lair("vendor/libhw_bundled.so.1"), 0644), 0);
    expect_bundled("");
    dlclose(library);
}

/* Another thread forks while there is the pipe for the reply, and the child keeps it: nobody waits
 * for the end of the pipe. */
static void test_fork(void **state)
{
    struct hw_context *context;
    (void)state;
    accident.bystander = 1;
    assert_int_equal(open_on(lair("good"), &in_child, &context), HW_OK);
    hw_close(context);
    kill(accident.bystander, SIGKILL);
    assert_int_equal(waitpid(accident.bystander, NULL, 0), accident.bystander);
    accident.bystander = 0;
}

/* If two directories have the same plugin, the first counts, whatever its end. */
static void test_shadow(void **state)
{
    struct hw_context *context;
    char path[8192];
    (void)state;
    make_directory(lair("first"));
    make_directory(lair("second"));
    put_plugin(lair("first"), "ends_crash");
    put_plugin(lair("second"), "ends_crash");
    put_plugin(lair("second"), "good");
    snprintf(path, sizeof path, "%s:%s", lair("first"), lair("second"));
    assert_int_equal(open_on(path, &in_child, &context), HW_OK);
    json_t *json = report(context);
    assert_string_equal(text_of(candidate(json, lair("first/hw_ends_crash.so")), "reason"),
                        "crash");
    assert_string_equal(text_of(candidate(json, lair("second/hw_ends_crash.so")), "reason"),
                        "shadowed");
    json_decref(json);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_no_standard_files),
        cmocka_unit_test(test_shadow),
        cmocka_unit_test(test_other_build),
        cmocka_unit_test(test_bundled),
        cmocka_unit_test(test_shortage),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests_name("load child", tests, lair_open, lair_close);
}
