/* SPDX-License-Identifier: MIT */
/* test_faults.c - bad files and bad plugins. Each must be reported with its one reason, and the
 * good plugin in the same directory must still be found and used. */
#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The plugins of plugins/ that do not kill this process: name and reason, "" if it is used. */
static const struct {
    const char *name;
    const char *reason;
} plugins[] = {
#define ANYWHERE(name, reason) { #name, reason },
#define CHILD(name, reason)
#define LATE(name, reason)
#define KIND(place, name, reason, words, what) place(name, reason)
#define VARIANT                                KIND
#include "kinds.def"
#undef VARIANT
#undef KIND
#undef LATE
#undef CHILD
#undef ANYWHERE
};

/* Without hw-probe nothing reads the whole file, and nothing looks at what a plugin changes: such a
 * plugin is used, or ends this process. */
static bool is_for_probe(const char *reason, const char *name)
{
    static const char *const texts[] = {
        BY_PROBE,         "malformed",        "executable-stack", "needs-library",
        "needs-libc",     "entry_undefined",  "entry_weak",       "changes_cwd",
        "changes_floats", "changes_handlers", "changes_locale",   "changes_mask",
        "changes_umask",  "elf_program",      "libm_missing"
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i], reason) == 0 || strcmp(texts[i], name) == 0)
            return true;
    return false;
}

static bool inproc; /* this test runs without hw-probe */

/* ThreadSanitizer has a thread of its own in hw-probe, which looks at what a plugin changes only
 * while there are no others. */
static bool is_unseen(const char *name)
{
#if defined(__SANITIZE_THREAD__)
    return strncmp(name, "changes_", 8) == 0 && strcmp(name, "changes_environment") != 0;
#else
    return !name;
#endif
}

static bool is_left_out(const char *reason, const char *name)
{
    return is_unseen(name) || (inproc && is_for_probe(reason, name));
}

struct fault {
    const char *reason;
    void (*make)(const char *directory,
                 char path[4096]); /* NULL: the built plugin `name` */
    const char *name;
};

/* Files that the probe has judged, and the number that it rejected. */
static unsigned judged, stopped;

/* Whether the dynamic loader reads a damaged table depends on its version, and on luck. */
static void check_by_probe(const json_t *entry)
{
    const char *reason = text_of(entry, "reason");
    judged++;
    stopped += *reason != '\0';
    check_reason(entry, reason);
    if (*reason)
        assert_string_equal(text_of(entry, "stage"), "probe");
}

/* The probe rejects more than half of the files that no reader rejects. */
static void test_judged(void **state)
{
    (void)state;
    print_message("# %u of %u damaged files were stopped by the probe\n", stopped, judged);
    assert_true(stopped * 2 >= judged);
}

/* One fault and the good plugin in one directory. */
static void test_fault(void **state)
{
    const struct fault *fault = *state;
    char path[4096];
    const char *directory = lair("%s", fault->name);
    make_directory(directory);
    snprintf(path, sizeof path, "%s/hw_%s.so", directory, fault->name);
    put_plugin(directory, "good");
    if (fault->make)
        fault->make(directory, path);
    else
        put_plugin(directory, fault->name);

    struct hw_context *context;
    struct hw_options options = { .threads = "1" };
    assert_int_equal(open_on(directory, &options, &context), HW_OK);
    use_all(context);
    json_t *json = report(context);
    const json_t *entry = candidate(json, path);
    assert_non_null(entry);
    if (strcmp(fault->reason, BY_PROBE) == 0)
        check_by_probe(entry);
    else
        check_reason(entry, fault->reason);
    check_good(context, json, lair("%s/hw_good.so", fault->name));
    json_decref(json);
    hw_close(context);
    fesetround(FE_TONEAREST); /* the one change that the library cannot undo */
}

/* All faults at once, in one directory. */
static void test_together(void **state)
{
    (void)state;
    make_directory(lair("together"));
    put_plugin(lair("together"), "good");
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (!is_left_out(plugins[i].reason, plugins[i].name))
            put_plugin(lair("together"), plugins[i].name);
    struct hw_context *context;
    assert_int_equal(open_on(lair("together"), NULL, &context), HW_OK);
    use_all(context);
    json_t *json = report(context);
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (!is_left_out(plugins[i].reason, plugins[i].name))
            check_reason(candidate(json, lair("together/hw_%s.so", plugins[i].name)),
                         plugins[i].reason);
    check_good(context, json, lair("together/hw_good.so"));
    json_decref(json);
    hw_close(context);
}

/* The most important parts of messages: the missing thing and the remedy. */
static void test_words(void **state)
{
    struct hw_context *context;
    (void)state;
    if (inproc)
        return;
    make_directory(lair("words"));
    put_plugin(lair("words"), "needs_missing");
    assert_int_equal(open_on(lair("words"), NULL, &context), HW_NO_DEVICE);
    assert_null(context);
    assert_non_null(
        strstr(hw_message(), "it needs libhw_nowhere.so.1, which was not found"));
    struct hw_options options = { .backends = "needs_missing" };
    assert_int_equal(open_on(lair("words"), &options, &context), HW_NO_DEVICE);
    assert_non_null(
        strstr(hw_message(), "it needs libhw_nowhere.so.1, which was not found"));
    assert_non_null(strstr(hw_message(), "Install nowhere"));
    assert_non_null(strstr(hw_message(), "HW_DISABLE=needs_missing"));

    options = (struct hw_options){ .flags = HW_OPEN_ANYWAY };
    assert_int_equal(open_on(lair("words"), &options, &context), HW_OK);
    json_t *json = report(context);
    assert_non_null(strstr(text_of(json, "open_error"), "libhw_nowhere.so.1"));
    json_decref(json);
    hw_close(context);
}

/* The plugin lacks a library it should have been linked with. The installation is complete. */
static void test_undefined(void **state)
{
    static const char *const rows[][2] = { { "symbol_undefined", "hw_nobody_has_this" },
                                           { "libm_missing", "expf" } };
    struct hw_context *context;
    (void)state;
    for (size_t i = 0; i < (inproc ? 1 : 2); i++) {
        assert_int_equal(open_on(lair("%s", rows[i][0]),
                                 &(struct hw_options){ .backends = rows[i][0] }, &context),
                         HW_NO_DEVICE);
        char remedy[128];
        snprintf(remedy, sizeof remedy, "Link it with the library that defines %s",
                 rows[i][1]);
        assert_non_null(strstr(hw_message(), remedy));
    }
}

/* A plugin that finds no device reports the remedy of its manifest, or its own. */
static void test_remedy(void **state)
{
    static const char *const rows[][2] = {
        { "open_no_driver", "libnowhere.so.1 is not installed. Remedy: Install nowhere" },
        { "open_own_remedy", "NOWHERE names no file. Remedy: correct NOWHERE" }
    };
    struct hw_context *context;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(open_on(lair("%s", rows[i][0]),
                                 &(struct hw_options){ .backends = rows[i][0] }, &context),
                         HW_NO_DEVICE);
        assert_non_null(strstr(hw_message(), rows[i][1]));
        assert_null(strchr(hw_message(), '\n'));
    }
}

/* After fork(), calls in the child return HW_FORKED. The child can open a context of its
 * own. */
static void test_fork(void **state)
{
    struct hw_context *context, *own = NULL;
    (void)state;
    make_directory(lair("fork"));
    put_plugin(lair("fork"), "good");
    assert_int_equal(open_on(lair("fork"), NULL, &context), HW_OK);
    struct hw_device_info info = { .size = sizeof info };
    pid_t child = fork();
    if (child == 0) {
        bool good = hw_device_info(hw_device_default(context), &info) == HW_FORKED;
        hw_close(context);
        good = good && open_on(lair("fork"), NULL, &own) == HW_OK;
        good = good && hw_device_info(hw_device_default(own), &info) == HW_OK;
        hw_close(own);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(hw_device_info(hw_device_default(context), &info), HW_OK);
    hw_close(context);
}

/* Functions that an older table lacks are unsupported. */
static void test_holes(void **state)
{
    struct hw_context *context;
    struct hw_kernel_info row = { .size = sizeof row };
    (void)state;
    make_directory(lair("holes"));
    put_plugin(lair("holes"), "table_older");
    assert_int_equal(open_on(lair("holes"), NULL, &context), HW_OK);
    assert_int_equal(hw_device_kernel(hw_device_default(context), 0, 0, &row),
                     HW_UNSUPPORTED);
    hw_close(context);
}

/* Two contexts at once share one plugin; then closing and opening again. */
static void test_two_contexts(void **state)
{
    struct hw_context *one, *two;
    (void)state;
    make_directory(lair("two"));
    put_plugin(lair("two"), "good");
    assert_int_equal(open_on(lair("two"), NULL, &one), HW_OK);
    assert_int_equal(open_on(lair("two"), NULL, &two), HW_OK);
    assert_ptr_not_equal(hw_device_default(one), hw_device_default(two));
    hw_close(one);
    struct hw_device_info info = { .size = sizeof info };
    assert_int_equal(hw_device_info(hw_device_default(two), &info), HW_OK);
    hw_close(two);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(open_on(lair("two"), NULL, &one), HW_OK);
        hw_close(one);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
static void *open_all(void *argument)
{
    struct hw_context *context;
    struct hw_options options = { .flags = HW_OPEN_ANYWAY };
    enum hw_status *status = argument;
    *status = open_on(lair("together"), &options, &context);
    use_all(context);
    hw_close(context);
    return NULL;
}

/* hw.h requires 64 KiB of stack: language runtimes call from threads with small stacks. */
static void test_stack(void **state)
{
    const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), room = 64 << 10;
    enum hw_status status = HW_INTERNAL;
    pthread_attr_t attributes;
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, least > room ? least : room),
                     0);
    assert_int_equal(pthread_create(&thread, &attributes, open_all, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, HW_OK);
    pthread_attr_destroy(&attributes);
}
#else
static void test_stack(void **state)
{
    (void)state;
    print_message("# not applicable: sanitizers need more stack\n");
}
#endif

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

/* No file descriptor stays open after any fault. */
static void test_descriptors(void **state)
{
    struct hw_context *context;
    (void)state;
    unsigned before = count_descriptors();
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (open_on(lair("%s", plugins[i].name), NULL, &context) == HW_OK) {
            use_all(context);
            hw_close(context);
        }
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    enum { PLUGINS = sizeof plugins / sizeof *plugins, MOST = 512 };
    static struct fault faults[MOST];
    static struct CMUnitTest tests[MOST];
    const char *probe = getenv("HW_TEST_PROBE");
    size_t count = 0;
    inproc = probe && strcmp(probe, "inproc") == 0;
    for (size_t i = 0; i < PLUGINS; i++)
        if (!is_left_out(plugins[i].reason, plugins[i].name))
            faults[count++] = (struct fault){ plugins[i].reason, NULL, plugins[i].name };
    for (const struct made *made = made_faults; made->name; made++)
        if (is_left_out(made->reason, made->name))
            ;
        else if (!made->root || geteuid() == 0)
            faults[count++] = (struct fault){ made->reason, made->make, made->name };
        else
            print_message("# not applicable to anyone but root: %s\n", made->name);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){ faults[i].name, test_fault, NULL, NULL,
                                        &faults[i] };

    const struct CMUnitTest whole[] = {
        cmocka_unit_test(test_together),     cmocka_unit_test(test_words),
        cmocka_unit_test(test_fork),         cmocka_unit_test(test_holes),
        cmocka_unit_test(test_two_contexts), cmocka_unit_test(test_stack),
        cmocka_unit_test(test_undefined),    cmocka_unit_test(test_remedy),
        cmocka_unit_test(test_descriptors),  cmocka_unit_test(test_judged),
    };
    memcpy(tests + count, whole, sizeof whole);
    count += sizeof whole / sizeof *whole;
    return _cmocka_run_group_tests("load", tests, count, lair_open, lair_close);
}
