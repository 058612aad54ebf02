/* SPDX-License-Identifier: MIT */
/* test_rescan.c - hw_rescan(): what is new is found, and what is in use stays as it is. */
#define _GNU_SOURCE
#include "fixture.h"

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

static const char *file_of(const char *name)
{
    return lair("%s/hw_%s.so", directory, name);
}

static void put(const char *name)
{
    put_plugin(lair("%s", directory), name);
}

/* A new directory with the good plugin, because a process keeps the code of what it has loaded. */
static void begin(void)
{
    static int number;
    snprintf(directory, sizeof directory, "plugins-%d", number++);
    make_directory(lair("%s", directory));
    write_file(DRIVER, "1\n", 2);
    put("good");
}

static struct hw_context *open_with(struct hw_options options)
{
    struct hw_context *context;
    options.probe = options.probe ? options.probe : "child";
    assert_int_equal(open_on(lair("%s", directory), &options, &context), HW_OK);
    return context;
}

static struct hw_context *open_default(void)
{
    return open_with((struct hw_options){ 0 });
}

static struct hw_device *find(struct hw_context *context, const char *name)
{
    struct hw_device *device;
    if (hw_device_find(context, name, &device))
        fail_msg("%s: %s", name, hw_message());
    return device;
}

static enum hw_status use(struct hw_device *device)
{
    struct hw_queue *queue;
    const enum hw_status status = hw_queue_open(device, NULL, &queue);
    if (!status)
        hw_queue_close(queue);
    return status;
}

static void rescan(struct hw_context *context)
{
    if (hw_rescan(context))
        fail_msg("hw_rescan: %s", hw_message());
}

/* The names of the selected devices, with a blank between them. */
static void expect_order(struct hw_context *context, const char *names)
{
    char text[512] = "";
    size_t i;
    json_t *json = report(context), *name;
    json_array_foreach (json_object_get(json, "selection"), i, name) {
        if (i)
            strcat(text, " ");
        strcat(text, json_string_value(name));
    }
    assert_string_equal(text, names);
    json_decref(json);
}

static void expect_file(struct hw_context *context, const char *path, const char *reason,
                        const char *kept)
{
    json_t *json = report(context);
    const json_t *entry = candidate(json, path);
    if (!entry)
        fail_msg("%s is not listed", path);
    if (strcmp(text_of(entry, "reason"), reason) ||
        (*kept ? !strstr(text_of(entry, "kept"), kept) : *text_of(entry, "kept") != 0))
        fail_msg("%s: reason \"%s\" (%s), kept \"%s\"; not \"%s\" and \"%s\"", path,
                 text_of(entry, "reason"), text_of(entry, "message"),
                 text_of(entry, "kept"), reason, kept);
    assert_string_equal(text_of(entry, "state"), *reason ? "stopped" : "used");
    json_decref(json);
}

/* Why the device is not selected. */
static void expect_why(struct hw_context *context, const char *name, const char *why)
{
    json_t *json = report(context), *device;
    size_t i;
    bool found = false;
    json_array_foreach (json_object_get(json, "devices"), i, device) {
        const bool is = strcmp(text_of(device, "name"), name) == 0;
        found |= is && json_is_false(json_object_get(device, "selected")) &&
                 strstr(text_of(device, "why"), why);
    }
    if (!found)
        fail_msg("%s is not unselected because \"%s\"", name, why);
    json_decref(json);
}

/* ---- what is new ---- */

static void new_file_appears(void **state)
{
    static const char *const probes[] = { "child", "inproc" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        struct hw_context *context = open_with((struct hw_options){ .probe = probes[i] });
        struct hw_device *good = find(context, "good");
        rescan(context);
        assert_int_equal(hw_device_count(context), 1);
        put("titled");
        assert_int_equal(hw_device_count(context), 1);
        rescan(context);
        assert_int_equal(hw_device_count(context), 2);
        assert_ptr_equal(hw_device_at(context, 0), good);
        assert_ptr_equal(hw_device_at(context, 1), find(context, "titled:0"));
        assert_null(hw_device_at(context, 2));
        assert_int_equal(use(find(context, "titled")), HW_OK);
        assert_int_equal(use(good), HW_OK);
        expect_file(context, file_of("good"), "", "");
        expect_file(context, file_of("titled"), "", "");
        rescan(context);
        assert_int_equal(hw_device_count(context), 2);
        hw_close(context);
    }
}

/* The index says when a device was found, the order how good it is. */
static void order_is_that_of_preference(void **state)
{
    (void)state;
    begin();
    put("view");
    struct hw_context *context = open_default();
    struct hw_device *good = find(context, "good"), *view = find(context, "view:0");
    expect_order(context, "view:0 view:1 good:0");
    put("late");
    put("titled");
    rescan(context);
    expect_order(context, "view:0 view:1 good:0 late:0 titled:0");
    hw_close(context);
    begin();
    context = open_default();
    good = find(context, "good");
    put("view");
    rescan(context);
    expect_order(context, "view:0 view:1 good:0");
    view = find(context, "view:0");
    assert_ptr_equal(hw_device_at(context, 0), good);
    assert_ptr_equal(hw_device_at(context, 1), view);
    assert_ptr_equal(hw_device_default(context), view);
    hw_close(context);
}

static void broken_file_is_mended(void **state)
{
    (void)state;
    begin();
    write_file(file_of("titled"), "not an object", 13);
    put("view");
    assert_int_equal(chmod(file_of("view"), 0666), 0);
    struct hw_context *context = open_default();
    expect_file(context, file_of("titled"), "not-an-object", "");
    expect_file(context, file_of("view"), "untrusted-mode", "");
    rescan(context);
    assert_int_equal(hw_device_count(context), 1);
    assert_int_equal(chmod(file_of("view"), 0644), 0);
    rescan(context);
    expect_file(context, file_of("view"), "", "");
    assert_int_equal(hw_device_count(context), 3);
    put("titled");
    rescan(context);
    expect_file(context, file_of("titled"), "", "");
    expect_file(context, file_of("view"), "", "");
    assert_int_equal(hw_device_count(context), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(use(hw_device_at(context, i)), HW_OK);
    hw_close(context);
}

/* Not before its time; and at once if something changes that it depends on. */
static void expired_verdict_is_tried_again(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        put("anew");
        setenv("HW_TEST_TALLY_TRY", "fail", 1);
        struct hw_context *context = open_default();
        unsetenv("HW_TEST_TALLY_TRY");
        expect_file(context, file_of("anew"), "open-failed", "");
        rescan(context);
        clock_time += 59;
        rescan(context);
        expect_file(context, file_of("anew"), "open-failed", "");
        if (i)
            write_file(DRIVER, "2\n", 2);
        else
            clock_time += 1;
        rescan(context);
        expect_file(context, file_of("anew"), "", "");
        assert_int_equal(use(find(context, "anew")), HW_OK);
        hw_close(context);
    }
}

static void named_file_appears(void **state)
{
    struct hw_context *context;
    char path[512];
    (void)state;
    begin();
    snprintf(path, sizeof path, "%s:%s", file_of("good"), file_of("titled"));
    assert_int_equal(open_on(path, NULL, &context), HW_OK);
    expect_file(context, file_of("titled"), "missing", "");
    put("titled");
    rescan(context);
    expect_file(context, file_of("titled"), "", "");
    assert_int_equal(unlink(file_of("titled")), 0);
    rescan(context);
    expect_file(context, file_of("titled"), "", "its file is gone");
    hw_close(context);
}

/* ---- what is in use ---- */

static void file_in_use_may_vanish_or_change(void **state)
{
    (void)state;
    begin();
    put("titled");
    struct hw_context *context = open_default();
    struct hw_device *good = find(context, "good"), *titled = find(context, "titled");
    assert_int_equal(use(good), HW_OK);
    assert_int_equal(use(titled), HW_OK);
    assert_int_equal(unlink(file_of("titled")), 0);
    expect_file(context, file_of("titled"), "", "its file is gone");
    rescan(context);
    expect_file(context, file_of("titled"), "", "its file is gone");
    put("titled");
    assert_int_equal(unlink(file_of("good")), 0);
    put("good");
    rescan(context);
    expect_file(context, file_of("titled"), "", "its file has changed");
    expect_file(context, file_of("good"), "", "its file has changed");
    assert_int_equal(hw_device_count(context), 2);
    assert_ptr_equal(find(context, "good"), good);
    assert_ptr_equal(find(context, "titled"), titled);
    assert_int_equal(use(good), HW_OK);
    assert_int_equal(use(titled), HW_OK);
    hw_close(context);
}

/* A file of the same name in an earlier directory does not replace what is in use. */
static void plugin_in_use_shadows_others(void **state)
{
    struct hw_context *context;
    char path[512];
    (void)state;
    begin();
    snprintf(path, sizeof path, "%s:%s", lair("%s-first", directory),
             lair("%s", directory));
    make_directory(lair("%s-first", directory));
    assert_int_equal(open_on(path, NULL, &context), HW_OK);
    struct hw_device *good = find(context, "good");
    put_plugin(lair("%s-first", directory), "good");
    rescan(context);
    expect_file(context, lair("%s-first/hw_good.so", directory), "shadowed", "");
    expect_file(context, file_of("good"), "", "");
    assert_int_equal(hw_device_count(context), 1);
    assert_ptr_equal(find(context, "good"), good);
    hw_close(context);
}

/* Two plugins that show the same hardware: the one that came first, whatever the ranks. */
static void view_in_use_shadows_others(void **state)
{
    (void)state;
    begin();
    put("view"); /* rank 60 */
    struct hw_context *context = open_default();
    struct hw_device *view = find(context, "view:0");
    put("zoo"); /* rank 20 */
    rescan(context);
    expect_order(context, "zoo:1 view:0 view:1 good:0 zoo:0");
    expect_why(context, "zoo:2", "shadowed: the same hardware as view:");
    expect_why(context, "zoo:3", "shadowed: the same hardware as view:");
    assert_ptr_equal(hw_device_at(context, 0), view);
    assert_int_equal(hw_device_count(context), 5);
    hw_close(context);
    begin();
    put("zoo");
    context = open_default();
    put("view");
    rescan(context);
    expect_order(context, "zoo:2 zoo:3 zoo:1 good:0 zoo:0");
    expect_why(context, "view:0", "shadowed: the same hardware as zoo:");
    assert_int_equal(hw_device_count(context), 5);
    hw_close(context);
}

/* ---- what was given up ---- */

static void plugin_that_was_given_up_is_tried_again(void **state)
{
    (void)state;
    begin();
    put("anew");
    struct hw_context *context = open_with((struct hw_options){ .backends = "anew,good" });
    struct hw_device *anew = find(context, "anew");
    setenv("HW_TEST_TALLY_BIND", "fail", 1);
    assert_int_equal(use(anew), HW_NO_DEVICE);
    for (int i = 0; i < 2; i++) { /* it is well where it is tried, but not here */
        rescan(context);
        expect_file(context, file_of("anew"), "", "");
        assert_int_equal(use(anew), HW_NO_DEVICE);
        expect_file(context, file_of("anew"), "open-failed", "");
        assert_ptr_equal(hw_device_default(context), find(context, "good"));
    }
    unsetenv("HW_TEST_TALLY_BIND");
    assert_int_equal(use(anew), HW_NO_DEVICE);
    setenv("HW_TEST_TALLY_TRY", "fail", 1);
    rescan(context);
    unsetenv("HW_TEST_TALLY_TRY");
    expect_file(context, file_of("anew"), "open-failed", "");
    assert_int_equal(use(anew), HW_NO_DEVICE);
    clock_time += 60;
    rescan(context);
    assert_int_equal(use(anew), HW_OK);
    assert_ptr_equal(find(context, "anew"), anew);
    assert_ptr_equal(hw_device_default(context), anew);
    assert_int_equal(hw_device_count(context), 2);
    hw_close(context);
}

/* The latest probe says what the same device must not compute. */
static void plugin_that_works_again_has_a_wrong_op(void **state)
{
    (void)state;
    begin();
    put("anew");
    struct hw_context *context = open_with((struct hw_options){ .backends = "anew,good" });
    struct hw_device *anew = find(context, "anew");
    setenv("HW_TEST_TALLY_BIND", "fail", 1);
    assert_int_equal(use(anew), HW_NO_DEVICE);
    unsetenv("HW_TEST_TALLY_BIND");
    setenv("HW_TEST_TALLY_WRONG", "1", 1);
    rescan(context);
    assert_ptr_equal(find(context, "anew"), anew);
    assert_int_equal(use(anew), HW_OK);
    unsetenv("HW_TEST_TALLY_WRONG");
    json_t *json = report(context);
    const json_t *entry = candidate(json, file_of("anew"));
    assert_true(json_integer_value(
                    json_object_get(json_object_get(entry, "admission"), "withdrawn")) > 0);
    assert_true(json_array_size(json_object_get(json, "demotions")) > 0);
    json_decref(json);
    hw_close(context);
}

/* A card whose plugin was given up is used through another one, unless its plugin works again. */
static void card_of_what_was_given_up_is_used_otherwise(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        begin();
        put("anew");
        setenv("HW_TEST_TALLY_CARD", "1", 1);
        struct hw_context *context = open_default();
        setenv("HW_TEST_TALLY_BIND", "fail", 1);
        assert_int_equal(use(find(context, "anew")), HW_NO_DEVICE);
        unsetenv("HW_TEST_TALLY_BIND");
        if (!again)
            setenv("HW_TEST_TALLY_TRY", "fail", 1);
        put("view");
        rescan(context);
        unsetenv("HW_TEST_TALLY_TRY");
        if (again)
            expect_why(context, "view:0", "shadowed: the same hardware as anew:0");
        else
            assert_int_equal(use(find(context, "view:0")), HW_OK);
        expect_order(context,
                     again ? "view:1 anew:0 good:0" : "view:0 view:1 anew:0 good:0");
        clock_time += 60;
        rescan(context); /* what was selected stays selected */
        expect_order(context,
                     again ? "view:1 anew:0 good:0" : "view:0 view:1 anew:0 good:0");
        assert_int_equal(use(find(context, "anew")), HW_OK);
        unsetenv("HW_TEST_TALLY_CARD");
        hw_close(context);
    }
}

/* Then its new devices are appended, and the earlier ones, of no use, keep their index. */
static void plugin_has_other_devices_by_now(void **state)
{
    (void)state;
    begin();
    put("anew");
    struct hw_context *context = open_with((struct hw_options){ .backends = "anew,good" });
    struct hw_device *before = find(context, "anew:0");
    setenv("HW_TEST_TALLY_TWO", "1", 1);
    assert_int_equal(use(before), HW_NO_DEVICE);
    expect_file(context, file_of("anew"), "other-devices", "");
    rescan(context);
    assert_int_equal(hw_device_count(context), 4);
    expect_order(context, "anew:0 anew:1 good:0");
    expect_why(context, "anew:0", "another version of its plugin");
    assert_ptr_equal(hw_device_at(context, 0), before);
    assert_ptr_not_equal(find(context, "anew:0"), before);
    assert_ptr_equal(hw_device_at(context, 2), find(context, "anew:0"));
    assert_ptr_equal(hw_device_default(context), find(context, "anew:0"));
    assert_int_equal(use(before), HW_NO_DEVICE);
    assert_int_equal(use(find(context, "anew:1")), HW_OK);
    rescan(context);
    assert_int_equal(hw_device_count(context), 4);
    unsetenv("HW_TEST_TALLY_TWO");
    hw_close(context);
}

/* ---- the selection ---- */

static void settings_hold_for_new_devices(void **state)
{
    (void)state;
    begin();
    struct hw_context *context =
        open_with((struct hw_options){ .backends = "*,!zoo:1", .disable = "view" });
    put("zoo");
    put("view");
    rescan(context);
    expect_order(context, "zoo:2 zoo:3 good:0 zoo:0");
    expect_why(context, "zoo:1", "excluded by \"!zoo:1\"");
    expect_file(context, file_of("view"), "disabled", "");
    hw_close(context);
}

/* This call succeeds although hw_open() would fail by now. */
static void missing_backend_is_no_error(void **state)
{
    (void)state;
    begin();
    put("open_no_driver");
    const struct hw_options named = { .backends = "open_no_driver,good" };
    struct hw_options anyway = named;
    anyway.flags = HW_OPEN_ANYWAY;
    anyway.backends = "titled,good";
    struct hw_context *context = open_with(named);
    assert_int_equal(unlink(file_of("open_no_driver")), 0);
    rescan(context);
    assert_int_equal(hw_device_count(context), 1);
    hw_close(context);
    context = open_with(anyway);
    json_t *json = report(context);
    assert_non_null(strstr(text_of(json, "open_error"), "titled"));
    json_decref(json);
    put("titled");
    rescan(context);
    json = report(context);
    assert_true(json_is_null(json_object_get(json, "open_error")));
    json_decref(json);
    expect_order(context, "titled:0 good:0");
    hw_close(context);
}

/* Results are compared with those of the CPU plugin, which computes what is wrong: it
 * stays last. */
static void judge_stays_last(void **state)
{
    struct hw_context *context;
    char path[1024];
    (void)state;
    if (access(PLUGINS "/hw_cpu.so", F_OK))
        skip();
    begin();
    snprintf(path, sizeof path, "%s:%s", lair("%s", directory), PLUGINS "/hw_cpu.so");
    const struct hw_options options = { .backends = "*,!good", .shadow = "1/1" };
    assert_int_equal(open_on(path, &options, &context), HW_OK);
    put("zoo");
    rescan(context);
    expect_order(context, "zoo:2 zoo:3 zoo:1 cpu:0");
    expect_why(context, "zoo:0", "HW_SHADOW requires cpu:0 to stay last");
    hw_close(context);
}

/* ---- who may call ---- */

static enum hw_status answers[3];
static unsigned answer_count;
static struct hw_context *calling;

static void call_back(void *user, const char *file)
{
    (void)user, (void)file;
    if (calling && answer_count < 3)
        answers[answer_count++] = hw_rescan(calling);
}

static void log_back(void *user, int32_t level, const char *text)
{
    (void)level;
    call_back(user, text);
}

static void callbacks_may_not_call_it(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        struct hw_context *context =
            open_with((struct hw_options){ .log = "debug",
                                           .log_fn = i ? log_back : NULL,
                                           .start_fn = i ? NULL : call_back });
        calling = context;
        answer_count = 0;
        assert_int_equal(use(find(context, "good")), HW_OK);
        assert_true(answer_count > 0);
        put("titled");
        const unsigned before = answer_count;
        rescan(context);
        assert_true(i == 0 || before == 3 || answer_count > before);
        for (unsigned k = 0; k < answer_count; k++)
            assert_int_equal(answers[k], HW_INVALID);
        calling = NULL;
        assert_int_equal(hw_device_count(context), 2);
        hw_close(context);
    }
    assert_int_equal(hw_rescan(NULL), HW_INVALID);
}

static void forked_process_does_not_look(void **state)
{
    int status;
    (void)state;
    begin();
    struct hw_context *context = open_default();
    put("titled");
    const pid_t child = fork();
    if (child == 0)
        _exit(hw_rescan(context) == HW_FORKED && hw_device_count(context) == 1 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_file_appears),
        cmocka_unit_test(order_is_that_of_preference),
        cmocka_unit_test(broken_file_is_mended),
        cmocka_unit_test(expired_verdict_is_tried_again),
        cmocka_unit_test(named_file_appears),
        cmocka_unit_test(file_in_use_may_vanish_or_change),
        cmocka_unit_test(plugin_in_use_shadows_others),
        cmocka_unit_test(view_in_use_shadows_others),
        cmocka_unit_test(plugin_that_was_given_up_is_tried_again),
        cmocka_unit_test(plugin_that_works_again_has_a_wrong_op),
        cmocka_unit_test(card_of_what_was_given_up_is_used_otherwise),
        cmocka_unit_test(plugin_has_other_devices_by_now),
        cmocka_unit_test(settings_hold_for_new_devices),
        cmocka_unit_test(missing_backend_is_no_error),
        cmocka_unit_test(judge_stays_last),
        cmocka_unit_test(callbacks_may_not_call_it),
        cmocka_unit_test(forked_process_does_not_look),
    };
    return cmocka_run_group_tests_name("open rescan", tests, lair_open, lair_close);
}
