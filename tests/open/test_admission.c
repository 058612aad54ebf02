/* SPDX-License-Identifier: MIT */
/* test_admission.c - ops that are wrong, fail, crash or hang when the plugin is tried: each is
 * withdrawn alone, and what is left of the plugin computes. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The clock that the library sees: no verdict expires meanwhile. */
time_t time(time_t *where)
{
    if (where)
        *where = 1000000;
    return 1000000;
}

/* fixtures/faulty/ops.c, built for each. */
static const struct {
    const char *name;
    const char *op, *dtypes; /* that are withdrawn; NULL: none */
    const char *words;       /* of the reason */
    const char *seconds;     /* HW_PROBE_TIMEOUT */
    bool slow;               /* not all cases are tested */
} ways[] = {
    { "ops_right", NULL, NULL, NULL, "20", false },
    { "ops_slow", NULL, NULL, NULL, "2", true },
    { "ops_tardy", NULL, NULL, NULL, "2", true },
    { "ops_wrong", "silu", "f32 f32", "should be", "20", false },
    { "ops_wrong_bf16", "silu", "bf16 bf16", "should be", "20", false },
    { "ops_asks", "silu", "bf16 bf16", "does not answer", "20", false },
    { "ops_fails", "silu", "f32 f32", "the driver says 700", "20", false },
    { "ops_loses", "silu", "* *", "the device fell off the bus", "20", false },
    { "ops_crashes", "silu", "* *", "segmentation fault", "20", false },
    /* It takes the operands of the others to the device, and they are not blamed for it. */
    { "ops_copies", "copy", "* *", "segmentation fault", "20", false },
};
enum { WAYS = sizeof ways / sizeof *ways, COUNT = 5 };

static char log_text[1 << 16];

static void keep_log(void *user, int32_t level, const char *text)
{
    const size_t used = strlen(log_text);
    (void)user, (void)level;
    snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
}

static enum hw_status start(const char *directory, struct hw_options options,
                            struct hw_context **context)
{
    options.probe = options.probe ? options.probe : "child";
    if (!options.probe_timeout)
        options.probe_timeout = "20";
    options.log_fn = keep_log;
    log_text[0] = '\0';
    return open_on(lair("%s", directory), &options, context);
}

static void put(const char *directory, const char *name)
{
    make_directory(lair("%s", directory));
    put_plugin(lair("%s", directory), name);
}

/* ---- what is computed ---- */

/* The status of silu; the result, if there is one, is right. */
static enum hw_status silu(struct hw_queue *queue)
{
    float x[COUNT] = { -2, -0.5, 0, 1, 3 }, y[COUNT];
    const struct hw_silu op = { .x = hw_host_1d(x, HW_F32, COUNT),
                                .y = hw_host_1d(y, HW_F32, COUNT) };
    const enum hw_status status = hw_silu(queue, &op);
    for (int i = 0; !status && i < COUNT; i++)
        assert_true(fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-5f);
    return status;
}

static void scale_is_right(struct hw_queue *queue)
{
    float x[COUNT] = { -2, -0.5, 0, 1, 3 }, y[COUNT];
    const struct hw_scale op = { .x = hw_host_1d(x, HW_F32, COUNT),
                                 .y = hw_host_1d(y, HW_F32, COUNT),
                                 .scale = 2,
                                 .bias = 1 };
    if (hw_scale(queue, &op))
        fail_msg("%s", hw_message());
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == 2 * x[i] + 1);
}

static void check_ops(struct hw_context *context, size_t i)
{
    struct hw_queue *queue;
    assert_int_equal(hw_queue_open(hw_device_default(context), NULL, &queue), HW_OK);
    scale_is_right(queue);
    if (!ways[i].op || strcmp(ways[i].op, "silu") != 0 || *ways[i].dtypes == 'b') {
        if (silu(queue))
            fail_msg("%s: %s", ways[i].name, hw_message());
    } else {
        assert_int_equal(silu(queue), HW_UNSUPPORTED);
        assert_non_null(strstr(hw_message(), "the admission test withdrew it"));
        assert_non_null(strstr(hw_message(), ways[i].words));
    }
    hw_queue_close(queue);
}

/* ---- what is said ---- */

/* That op and no other is withdrawn. */
static void check_report(const json_t *json, size_t i)
{
    const json_t *demotions = json_object_get(json, "demotions"), *each;
    const json_t *entry = candidate(json, lair("%s/hw_%s.so", ways[i].name, ways[i].name));
    const json_t *admission = json_object_get(entry, "admission");
    bool found = false;
    size_t k;
    assert_string_equal(text_of(entry, "state"), "used");
    assert_true(json_integer_value(json_object_get(admission, "tested")) > 0);
    assert_int_equal(json_integer_value(json_object_get(admission, "untested")) > 0,
                     ways[i].slow);
    assert_int_equal(json_integer_value(json_object_get(admission, "withdrawn")),
                     json_array_size(demotions));
    json_array_foreach (demotions, k, each) {
        assert_string_equal(text_of(each, "op"), ways[i].op);
        assert_string_equal(text_of(each, "cause"), "admission");
        if (!strstr(text_of(each, "why"), ways[i].words))
            fail_msg("%s: %s", ways[i].name, text_of(each, "why"));
        found = found || !strcmp(text_of(each, "dtypes"), ways[i].dtypes);
    }
    assert_int_equal(found, ways[i].dtypes != NULL);
    assert_int_equal(strstr(log_text, "in the admission test, ") != NULL, found);
}

static void check_way(size_t i, bool recalled)
{
    struct hw_context *context;
    const struct hw_options options = { .fallback = "error",
                                        .probe_timeout = ways[i].seconds };
    assert_int_equal(start(ways[i].name, options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("%s/hw_%s.so", ways[i].name, ways[i].name));
    assert_int_equal(json_is_true(json_object_get(entry, "recalled")), recalled);
    check_report(json, i);
    check_ops(context, i);
    json_decref(json);
    hw_close(context);
}

/* ---- the tests ---- */

/* Tried, then from the cache. */
static void each_is_withdrawn_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAYS; i++) {
        put(ways[i].name, ways[i].name);
        check_way(i, false);
        check_way(i, true);
    }
}

static int64_t count_untested(const char *probe, bool recalled)
{
    struct hw_context *context;
    const struct hw_options options = { .probe = probe, .probe_timeout = "2" };
    assert_int_equal(start("full", options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("full/hw_ops_slow.so"));
    const int64_t count = json_integer_value(
        json_object_get(json_object_get(entry, "admission"), "untested"));
    assert_int_equal(json_is_true(json_object_get(entry, "recalled")), recalled);
    json_decref(json);
    hw_close(context);
    return count;
}

/* HW_PROBE=full tests the cases left out for lack of time: once, and for all programs. */
static void what_was_left_out_is_tested_later(void **state)
{
    (void)state;
    put("full", "ops_slow");
    assert_true(count_untested("child", false) > 0);
    assert_true(count_untested("child", true) > 0);
    assert_int_equal(count_untested("full", false), 0);
    assert_int_equal(count_untested("full", true), 0);
    assert_int_equal(count_untested("child", true), 0);
}

static void remedy_is(struct hw_context *context, const char *words)
{
    json_t *json = report(context);
    const json_t *first = json_array_get(json_object_get(json, "demotions"), 0);
    if (!strstr(text_of(first, "remedy"), words) || !strstr(log_text, words))
        fail_msg("%s\n%s", text_of(first, "remedy"), log_text);
    json_decref(json);
}

/* The remedy depends on the fault, and is something that the user of a command can do. */
static void each_cause_has_its_remedy(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    (void)state;
    put("cause", "ops_crashes");
    assert_int_equal(start("cause", (struct hw_options){ .fallback = "error" }, &context),
                     HW_OK);
    remedy_is(context, "update the driver or the plugin");
    assert_null(strstr(log_text, "HW_PROBE=full"));
    assert_int_equal(hw_queue_open(hw_device_default(context), NULL, &queue), HW_OK);
    assert_int_equal(silu(queue), HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), "(remedy: update the driver or the plugin)"));
    assert_null(strstr(hw_message(), "hw_device_reset"));
    hw_close(context);
}

/* In bf16. */
static enum hw_status silu_bf16(struct hw_queue *queue)
{
    uint16_t x[COUNT] = { 0 }, y[COUNT] = { 1, 1, 1, 1, 1 };
    const struct hw_silu op = { .x = hw_host_1d(x, HW_BF16, COUNT),
                                .y = hw_host_1d(y, HW_BF16, COUNT) };
    const enum hw_status status = hw_silu(queue, &op);
    for (int i = 0; !status && i < COUNT; i++)
        assert_int_equal(y[i], 0);
    return status;
}

static size_t count_withdrawn(struct hw_context *context)
{
    json_t *json = report(context);
    const size_t count = json_array_size(json_object_get(json, "demotions"));
    json_decref(json);
    return count;
}

static int64_t left_out(struct hw_context *context, const char *name)
{
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("%s/hw_ops_%s.so", name, name));
    const int64_t count = json_integer_value(
        json_object_get(json_object_get(entry, "admission"), "untested"));
    json_decref(json);
    return count;
}

static void open_alone(const char *name, const char *probe, struct hw_context **context,
                       struct hw_queue **queue)
{
    const struct hw_options options = { .fallback = "error",
                                        .probe = probe,
                                        .probe_timeout = "1" };
    assert_int_equal(start(name, options, context), HW_OK);
    assert_int_equal(hw_queue_open(hw_device_default(*context), NULL, queue), HW_OK);
}

/* A case too slow for the start has more time before the first use, and with HW_PROBE=full. */
static void a_slow_case_is_not_withdrawn(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    (void)state;
    put("compiles", "ops_compiles");
    for (int i = 0; i < 3; i++) {
        open_alone("compiles", i == 1 ? "full" : "child", &context, &queue);
        assert_int_equal(left_out(context, "compiles") > 0, i == 0);
        assert_int_equal(silu(queue), HW_OK);
        assert_int_equal(silu_bf16(queue), HW_OK);
        assert_int_equal(count_withdrawn(context), 0);
        hw_close(context);
    }
}

/* One that does not come to an end is left out at the start as well, and found when it is first
 * used; the next program knows. */
static void a_case_that_hangs_is_found_later(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    (void)state;
    put("hangs", "ops_hangs");
    for (int i = 0; i < 2; i++) {
        open_alone("hangs", "child", &context, &queue);
        assert_true(left_out(context, "hangs") > 0);
        assert_int_equal(count_withdrawn(context), i);
        assert_int_equal(silu(queue), HW_UNSUPPORTED);
        assert_non_null(
            strstr(hw_message(), "within 6 seconds (6 times HW_PROBE_TIMEOUT)"));
        assert_int_equal(count_withdrawn(context), 1);
        scale_is_right(queue);
        hw_close(context);
    }
}

/* Another device computes it, and the call says nothing of it. */
static void the_next_device_computes_it(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    struct hw_call_stats calls = { .size = sizeof calls };
    (void)state;
    put("pair", "ops_wrong");
    put_plugin(lair("pair"), "ops_right");
    assert_int_equal(
        start("pair", (struct hw_options){ .backends = "ops_wrong,ops_right" }, &context),
        HW_OK);
    assert_int_equal(hw_queue_open(hw_device_default(context), NULL, &queue), HW_OK);
    scale_is_right(queue);
    assert_int_equal(silu(queue), HW_OK);
    assert_int_equal(hw_queue_calls(queue, HW_OP_SILU, &calls), HW_OK);
    assert_int_equal(calls.fallbacks, 1);
    hw_close(context);
}

/* It is asked for again, wrong as it is. */
static void a_reset_lifts_it(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    float x[COUNT] = { 0 }, y[COUNT];
    const struct hw_silu op = { .x = hw_host_1d(x, HW_F32, COUNT),
                                .y = hw_host_1d(y, HW_F32, COUNT) };
    (void)state;
    put("reset", "ops_wrong");
    assert_int_equal(start("reset", (struct hw_options){ .fallback = "error" }, &context),
                     HW_OK);
    assert_int_equal(hw_device_reset(hw_device_default(context)), HW_OK);
    assert_int_equal(hw_queue_open(hw_device_default(context), NULL, &queue), HW_OK);
    assert_int_equal(hw_silu(queue, &op), HW_OK);
    assert_true(y[0] == 0.5f);
    hw_close(context);
}

/* With HW_PROBE=full a case has six times as long as all the rest. */
static void two_that_hang(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    (void)state;
    put("ops_pair", "ops_pair");
    assert_int_equal(start("ops_pair",
                           (struct hw_options){ .probe = "full", .probe_timeout = "1" },
                           &context),
                     HW_OK);
    remedy_is(context, "test it with HW_PROBE=full hw status");
    json_t *json = report(context);
    const json_t *demotions = json_object_get(json, "demotions"), *each;
    size_t i;
    assert_int_equal(json_array_size(demotions), 2);
    json_array_foreach (demotions, i, each) {
        assert_string_equal(text_of(each, "cause"), "slow");
        assert_int_equal(strspn(text_of(each, "dtypes"), "* "),
                         strlen(text_of(each, "dtypes")));
        assert_non_null(strstr(text_of(each, "why"), "within 6 seconds"));
    }
    assert_string_not_equal(text_of(json_array_get(demotions, 0), "op"),
                            text_of(json_array_get(demotions, 1), "op"));
    assert_int_equal(hw_queue_open(hw_device_default(context), NULL, &queue), HW_OK);
    scale_is_right(queue);
    json_decref(json);
    hw_close(context);
}

/* A plugin is not started for ever: with the fifth op that ends it, it is refused. */
static void a_crowd_is_refused(void **state)
{
    struct hw_context *context;
    (void)state;
    put("ops_crowd", "ops_crowd");
    assert_int_equal(
        start("ops_crowd", (struct hw_options){ .flags = HW_OPEN_ANYWAY }, &context),
        HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("ops_crowd/hw_ops_crowd.so"));
    assert_string_equal(text_of(entry, "reason"), "failing-ops");
    assert_non_null(strstr(text_of(entry, "message"), "computed"));
    assert_true(json_is_null(json_object_get(entry, "admission")));
    json_decref(json);
    hw_close(context);
}

static bool is_withdrawn(const json_t *json, const char *op, const char *device)
{
    const json_t *each;
    size_t k;
    json_array_foreach (json_object_get(json, "demotions"), k, each)
        if (!strcmp(text_of(each, "op"), op) &&
            !strcmp(text_of(each, "dtypes"), "f32 f32") &&
            strstr(text_of(each, "device"), device))
            return true;
    return false;
}

/* The second device ends the process, and before that or afterwards the first cannot be opened: no
 * op of the other device is left out. */
static void a_device_comes_and_goes(void **state)
{
    static const char *const names[] = { "ops_once", "ops_again" }, *const bad[] = {
        "ops_once:1", "ops_again:1"
    };
    struct hw_context *context;
    (void)state;
    for (int i = 0; i < 2; i++) {
        put(names[i], names[i]);
        setenv("HW_TEST_OPENED", lair("%s.opened", names[i]), 1);
        assert_int_equal(start(names[i], (struct hw_options){ 0 }, &context), HW_OK);
        unsetenv("HW_TEST_OPENED");
        json_t *json = report(context);
        assert_true(is_withdrawn(json, "scale", bad[i]));
        assert_true(i == 0 || is_withdrawn(json, "silu", "ops_again:0"));
        json_decref(json);
        hw_close(context);
    }
}

/* Nothing is tried in this process, so that nothing is withdrawn. */
static void in_the_process_nothing_is_tested(void **state)
{
    struct hw_context *context;
    const struct hw_options options = { .probe = "inproc" };
    (void)state;
    put("inproc", "ops_wrong");
    assert_int_equal(open_on(lair("inproc"), &options, &context), HW_OK);
    json_t *json = report(context);
    assert_int_equal(json_array_size(json_object_get(json, "demotions")), 0);
    assert_true(json_is_null(
        json_object_get(candidate(json, lair("inproc/hw_ops_wrong.so")), "admission")));
    json_decref(json);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_withdrawn_alone),
        cmocka_unit_test(what_was_left_out_is_tested_later),
        cmocka_unit_test(each_cause_has_its_remedy),
        cmocka_unit_test(a_slow_case_is_not_withdrawn),
        cmocka_unit_test(a_case_that_hangs_is_found_later),
        cmocka_unit_test(the_next_device_computes_it),
        cmocka_unit_test(a_reset_lifts_it),
        cmocka_unit_test(two_that_hang),
        cmocka_unit_test(a_crowd_is_refused),
        cmocka_unit_test(a_device_comes_and_goes),
        cmocka_unit_test(in_the_process_nothing_is_tested),
    };
    return cmocka_run_group_tests(tests, lair_open, lair_close);
}
