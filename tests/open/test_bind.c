/* SPDX-License-Identifier: MIT */
/* test_bind.c - a plugin that was tried in hw-probe is loaded into this process on the first use of
 * one of its devices, and not before; and the cases where it has changed in between. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[32];   /* in the lair */
static char logged[2048];    /* the last warning */
static struct tally nothing; /* is executed */

static void keep_log(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level <= HW_LOG_WARN)
        snprintf(logged, sizeof logged, "%s", text);
}

static struct hw_context *open_with(struct hw_options options)
{
    struct hw_context *context;
    options.probe = options.probe ? options.probe : "child";
    options.log_fn = keep_log;
    assert_int_equal(open_on(lair("%s", directory), &options, &context), HW_OK);
    return context;
}

/* Installs the plugins late, which counts how often it is loaded, and good, and tries them once.
 * The directory is new each time, because this process never unloads their code. late comes
 * first. */
static void put_both(void)
{
    static int number;
    snprintf(directory, sizeof directory, "plugins-%d", number++);
    make_directory(lair("%s", directory));
    put_plugin(lair("%s", directory), "late");
    put_plugin(lair("%s", directory), "good");
    write_file(DRIVER, "1\n", 2);
    tally_begin();
    logged[0] = '\0';
    hw_close(open_with((struct hw_options){ .backends = "late,good" }));
    const struct tally tally = tallied();
    assert_int_equal(tally.tried, 1);
    assert_int_equal(tally.bound, 0);
}

static struct hw_context *open_both(void)
{
    return open_with((struct hw_options){ .backends = "late,good" });
}

static void expect(struct tally wanted)
{
    const struct tally tally = tallied();
    assert_int_equal(tally.tried, wanted.tried);
    assert_int_equal(tally.bound, wanted.bound);
}

static enum hw_status use(struct hw_device *device)
{
    struct hw_queue *queue;
    const enum hw_status status = hw_queue_open(device, NULL, &queue);
    if (!status)
        hw_queue_close(queue);
    return status;
}

static struct hw_device *find(struct hw_context *context, const char *name)
{
    struct hw_device *device;
    assert_int_equal(hw_device_find(context, name, &device), HW_OK);
    return device;
}

static void expect_entry(struct hw_context *context, bool bound, const char *reason)
{
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("%s/hw_late.so", directory));
    assert_non_null(entry);
    assert_string_equal(text_of(entry, "state"), *reason ? "stopped" : "used");
    assert_string_equal(text_of(entry, "reason"), reason);
    assert_string_equal(text_of(entry, "version"), "1");
    assert_int_equal(json_is_true(json_object_get(entry, "bound")), bound);
    assert_true(json_is_array(json_object_get(entry, "ops")));
    json_decref(json);
}

/* ---- calls that load a plugin, and calls that do not ---- */

static void unused_plugin_is_not_executed(void **state)
{
    struct hw_device_info info = { .size = sizeof info };
    struct hw_device *device;
    (void)state;
    put_both();
    struct hw_context *context = open_both();
    struct hw_device *late = find(context, "late:0");
    assert_int_equal(hw_device_count(context), 2);
    assert_ptr_equal(hw_device_at(context, 0), late);
    assert_int_equal(hw_device_info(late, &info), HW_OK);
    assert_string_equal(info.name, "a device of late");
    assert_int_equal(info.memory_total, 2000);
    assert_int_equal(info.memory_free, 0); /* not known */
    assert_int_equal(info.buffer_alignment, 256);
    expect_entry(context, false, "");
    assert_int_equal(use(find(context, "good")), HW_OK);
    assert_int_equal(hw_device_import(context, "good.device", NULL, &device),
                     HW_UNSUPPORTED);
    hw_close(context);
    expect(nothing);
}

static void first_use_executes_it(void **state)
{
    struct hw_device_info info = { .size = sizeof info };
    (void)state;
    put_both();
    struct hw_context *context = open_both();
    struct hw_device *late = find(context, "late");
    assert_int_equal(use(late), HW_OK);
    expect((struct tally){ .bound = 1 });
    expect_entry(context, true, "");
    assert_int_equal(hw_device_info(late, &info), HW_OK);
    assert_int_equal(info.memory_free, 1000);
    hw_close(context);
}

/* The first use may be the pool, the rows, a query or a vendor handle. */
static void everything_that_uses_it_executes_it(void **state)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    struct hw_kernel_info row = { .size = sizeof row };
    struct hw_silu silu = { 0 };
    struct hw_buffer *buffer;
    struct hw_event *event;
    struct hw_device *found;
    (void)state;
    for (int i = 0; i < 7; i++) {
        put_both();
        struct hw_context *context = open_both();
        struct hw_device *late = hw_device_at(context, 0);
        i == 0   ? hw_pool_stats(late, &stats)
        : i == 1 ? hw_pool_trim(late)
        : i == 2 ? hw_device_kernel(late, 0, 0, &row)
        : i == 3 ? hw_device_supports(late, HW_OP_SILU, &silu, sizeof silu)
        : i == 4 ? hw_buffer_alloc(late, 1, 0, &buffer)
        : i == 5 ? hw_event_create(late, 0, &event)
                 : hw_device_import(context, "late.device", NULL, &found);
        expect((struct tally){ .bound = 1 });
        hw_close(context);
    }
}

static void probe_in_the_process_binds_at_once(void **state)
{
    (void)state;
    put_both();
    struct hw_context *context = open_with((struct hw_options){ .probe = "inproc" });
    expect((struct tally){ .bound = 1 });
    expect_entry(context, true, "");
    hw_close(context);
}

static void required_plugin_is_bound_at_once(void **state)
{
    struct hw_options options = { .require = "late", .probe = "child" };
    struct hw_context *context;
    (void)state;
    put_both();
    context = open_with(options);
    expect((struct tally){ .bound = 1 });
    hw_close(context);
    put_both();
    setenv("HW_TEST_TALLY_BIND", "fail", 1);
    assert_int_equal(open_on(lair("%s", directory), &options, &context), HW_NO_DEVICE);
    unsetenv("HW_TEST_TALLY_BIND");
    assert_non_null(strstr(hw_message(), "require: \"late\": "));
    assert_non_null(strstr(hw_message(), "not here"));
}

static void forked_process_binds_nothing(void **state)
{
    int status;
    (void)state;
    put_both();
    struct hw_context *context = open_both();
    const pid_t child = fork();
    if (child == 0)
        _exit(use(hw_device_default(context)) == HW_FORKED ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect(nothing);
    hw_close(context);
}

static void *use_in_thread(void *device)
{
    return (void *)(uintptr_t)use(device);
}

/* Two threads of each of two contexts. */
static void threads_bind_it_once(void **state)
{
    pthread_t threads[4];
    struct hw_context *contexts[2];
    char text[1024];
    void *result;
    (void)state;
    put_both();
    for (int i = 0; i < 2; i++)
        contexts[i] = open_both();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread,
                                        hw_device_at(contexts[i / 2], 0)),
                         0);
    for (int i = 0; i < 2; i++) /* its length may change meanwhile */
        assert_true(hw_explain(contexts[i], text, sizeof text) > sizeof text);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((uintptr_t)result, HW_OK);
    }
    for (int i = 0; i < 2; i++) {
        expect_entry(contexts[i], true, "");
        hw_close(contexts[i]);
    }
    expect((struct tally){ .bound = 1 });
}

/* ---- a plugin that has changed ---- */

/* The error is clear, and the same each time; other devices are not affected. */
static void failure_is_reported_by_each_use(void **state)
{
    (void)state;
    put_both();
    setenv("HW_TEST_TALLY_BIND", "fail", 1);
    struct hw_context *context = open_both();
    struct hw_device *late = find(context, "late");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(use(late), HW_NO_DEVICE);
        assert_non_null(strstr(hw_message(), lair("%s/hw_late.so", directory)));
        assert_non_null(strstr(hw_message(), "not here"));
        assert_non_null(strstr(hw_message(), "Remedy: "));
    }
    unsetenv("HW_TEST_TALLY_BIND");
    assert_int_equal(use(late), HW_NO_DEVICE);
    assert_int_equal(use(find(context, "good")), HW_OK);
    expect_entry(context, false, "open-failed");
    assert_non_null(strstr(logged, "hw_late.so is not used"));
    hw_close(context);
    expect((struct tally){ .bound = 1 });
}

/* A shortage is temporary: the plugin stays usable, and its verdict is kept. */
static void shortage_of_memory_is_not_for_ever(void **state)
{
    (void)state;
    put_both();
    setenv("HW_TEST_TALLY_BIND", "starve", 1);
    struct hw_context *context = open_both();
    struct hw_device *late = find(context, "late");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(use(late), HW_NO_MEMORY);
        assert_non_null(strstr(hw_message(), lair("%s/hw_late.so", directory)));
        assert_non_null(strstr(hw_message(), "no room"));
        assert_non_null(strstr(hw_message(), "Remedy: Free some memory"));
        expect_entry(context, false, "");
    }
    unsetenv("HW_TEST_TALLY_BIND");
    assert_int_equal(use(late), HW_OK);
    expect_entry(context, true, "");
    hw_close(context);
    hw_close(open_both());
    assert_int_equal(tallied().tried, 0);
}

/* Any step of loading may fail for lack of a descriptor. */
static void shortage_of_descriptors_is_not_for_ever(void **state)
{
    (void)state;
    for (rlim_t spare = 0, failed = 0;; spare++) {
        struct rlimit all, few;
        put_both();
        struct hw_context *context = open_both();
        struct hw_device *late = find(context, "late");
        const int next = dup(0);
        assert_true(next >= 0);
        assert_int_equal(close(next), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
        few = (struct rlimit){ (rlim_t)next + spare, all.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        const enum hw_status status = use(late);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
        assert_int_equal(use(late), HW_OK);
        hw_close(context);
        if (status == HW_OK) {
            assert_true(failed > 1);
            return;
        }
        assert_int_equal(status, HW_NO_MEMORY);
        failed++;
    }
}

static void default_is_the_next_device_then(void **state)
{
    (void)state;
    put_both();
    setenv("HW_TEST_TALLY_BIND", "fail", 1);
    struct hw_context *context = open_both();
    assert_ptr_equal(hw_device_default(context), hw_device_at(context, 1));
    assert_non_null(strstr(logged, "hw_late.so is not used"));
    hw_close(context);
    context =
        open_with((struct hw_options){ .backends = "late,good", .fallback = "error" });
    assert_ptr_equal(hw_device_default(context), hw_device_at(context, 0));
    assert_int_equal(use(hw_device_default(context)), HW_NO_DEVICE);
    hw_close(context);
    unsetenv("HW_TEST_TALLY_BIND");
}

/* The file is replaced by a copy of the same plugin, as an installer does. */
static void replaced_file_is_tried_first(void **state)
{
    (void)state;
    put_both();
    struct hw_context *context = open_both();
    assert_int_equal(unlink(lair("%s/hw_late.so", directory)), 0);
    put_plugin(lair("%s", directory), "late");
    assert_int_equal(use(find(context, "late")), HW_OK);
    expect((struct tally){ .tried = 1, .bound = 1 });
    hw_close(context);
    hw_close(open_both());
    expect(nothing);
}

static void changed_driver_is_tried_first(void **state)
{
    (void)state;
    put_both();
    struct hw_context *context = open_both();
    write_file(DRIVER, "2\n", 2);
    assert_int_equal(use(find(context, "late")), HW_OK);
    expect((struct tally){ .tried = 1, .bound = 1 });
    hw_close(context);
}

static void changed_file_is_checked_again(void **state)
{
    (void)state;
    put_both();
    struct hw_context *context = open_both();
    assert_int_equal(unlink(lair("%s/hw_late.so", directory)), 0);
    assert_int_equal(use(find(context, "late")), HW_NO_DEVICE);
    expect_entry(context, false, "missing");
    hw_close(context);
    put_both();
    context = open_both();
    write_file(lair("%s/hw_late.so", directory), "not an object", 13);
    assert_int_equal(use(find(context, "late")), HW_NO_DEVICE);
    expect_entry(context, false, "not-an-object");
    hw_close(context);
    expect(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_plugin_is_not_executed),
        cmocka_unit_test(first_use_executes_it),
        cmocka_unit_test(everything_that_uses_it_executes_it),
        cmocka_unit_test(probe_in_the_process_binds_at_once),
        cmocka_unit_test(required_plugin_is_bound_at_once),
        cmocka_unit_test(forked_process_binds_nothing),
        cmocka_unit_test(threads_bind_it_once),
        cmocka_unit_test(failure_is_reported_by_each_use),
        cmocka_unit_test(shortage_of_memory_is_not_for_ever),
        cmocka_unit_test(shortage_of_descriptors_is_not_for_ever),
        cmocka_unit_test(default_is_the_next_device_then),
        cmocka_unit_test(replaced_file_is_tried_first),
        cmocka_unit_test(changed_driver_is_tried_first),
        cmocka_unit_test(changed_file_is_checked_again),
    };
    return cmocka_run_group_tests_name("open bind", tests, lair_open, lair_close);
}
