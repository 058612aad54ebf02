/* SPDX-License-Identifier: MIT */
/* test_first_use.c - ops that the admission test leaves out for want of time: each is tested once,
 * before it is first used, and never a second time. In these plugins (fixtures/faulty/ops.c) silu
 * takes the time, and scale is left out. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { COUNT = 5 };

/* Seconds. The op that takes the time of the others takes more than a quarter of them. */
#define TIMEOUT "2"

static char log_text[1 << 14];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_log(void *user, int32_t level, const char *text)
{
    (void)user, (void)level;
    pthread_mutex_lock(&log_lock);
    const size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
    pthread_mutex_unlock(&log_lock);
}

/* The clock that the library sees. */
static time_t clock_time = 1000000;

time_t time(time_t *where)
{
    if (where)
        *where = clock_time;
    return clock_time;
}

/* ---- the world ---- */

static struct hw_context *context;
static struct hw_queue *queue;
static const char *where;  /* the directory with the plugins */
static const char *worker; /* HW_WORKER */

/* The plugin tells there how often it was tried. */
static long runs(void)
{
    struct stat file;
    return stat(lair("%s.runs", where), &file) ? 0 : (long)file.st_size;
}

static void start(const char *backends, const char *probe)
{
    const struct hw_options options = { .backends = backends,
                                        .probe = probe,
                                        .probe_timeout = TIMEOUT,
                                        .worker = worker,
                                        .log_fn = keep_log };
    log_text[0] = '\0';
    setenv("HW_TEST_OPENED", lair("%s.runs", where), 1);
    if (open_on(lair("%s", where), &options, &context) ||
        hw_queue_open(hw_device_default(context), NULL, &queue))
        fail_msg("%s", hw_message());
}

/* A directory with this plugin, and one more whose ops are right. */
static void begin(const char *directory, const char *plugin)
{
    where = directory;
    make_directory(lair("%s", directory));
    put_plugin(lair("%s", directory), plugin);
    put_plugin(lair("%s", directory), "ops_right");
}

static int64_t admission(const char *plugin, const char *key)
{
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("%s/hw_%s.so", where, plugin));
    const json_t *number = json_object_get(json_object_get(entry, "admission"), key);
    assert_true(json_is_integer(number));
    const int64_t value = json_integer_value(number);
    json_decref(json);
    return value;
}

/* ---- what is computed ---- */

static float input[COUNT] = { -2, -0.5, 0, 1, 3 };

/* The sum of a row of two elements. */
static struct hw_layernorm layernorm_of(const float *x, float *y)
{
    return (struct hw_layernorm){ .x = hw_host_3d(x, HW_F32, 1, 1, 2),
                                  .y = hw_host_3d(y, HW_F32, 1, 1, 2),
                                  .eps = 1 };
}

static struct hw_scale scale_to(float *y)
{
    return (struct hw_scale){ .x = hw_host_1d(input, HW_F32, COUNT),
                              .y = hw_host_1d(y, HW_F32, COUNT),
                              .scale = 2,
                              .bias = 1 };
}

static bool is_scaled(const float *y)
{
    bool right = true;
    for (int i = 0; i < COUNT; i++)
        right = right && y[i] == 2 * input[i] + 1;
    return right;
}

static void scale_on(struct hw_queue *on)
{
    float y[COUNT] = { 0 };
    const struct hw_scale op = scale_to(y);
    if (hw_scale(on, &op) || hw_queue_wait(on))
        fail_msg("%s", hw_message());
    assert_true(is_scaled(y));
}

static uint64_t fallbacks(uint32_t op)
{
    struct hw_call_stats calls = { .size = sizeof calls };
    assert_int_equal(hw_queue_calls(queue, op, &calls), HW_OK);
    return calls.fallbacks;
}

/* ---- the tests ---- */

/* Once, also for the programs that come later. */
static void a_right_op_is_tested_once(void **state)
{
    (void)state;
    begin("right", "ops_later_right");
    start("ops_later_right", "child");
    const int64_t left = admission("ops_later_right", "untested"),
                  known = admission("ops_later_right", "tested");
    assert_int_equal(runs(), 1);
    scale_on(queue);
    assert_int_equal(runs(), 2);
    assert_int_equal(admission("ops_later_right", "untested"), left - 1);
    assert_int_equal(admission("ops_later_right", "tested"), known + 1);
    scale_on(queue);
    hw_close(context);

    start("ops_later_right", "child");
    assert_int_equal(admission("ops_later_right", "untested"), left - 1);
    scale_on(queue);
    assert_int_equal(runs(), 2);
    assert_int_equal(fallbacks(HW_OP_SCALE), 0);
    hw_close(context);
}

/* It never gets to compute; the next device does, and the next program knows. */
static void a_wrong_op_is_never_used(void **state)
{
    (void)state;
    begin("wrong", "ops_later_wrong");
    for (int i = 0; i < 2; i++) {
        start("ops_later_wrong,ops_right", "child");
        scale_on(queue);
        assert_int_equal(fallbacks(HW_OP_SCALE), 1);
        assert_int_equal(runs(), 2);
        assert_non_null(strstr(log_text,
                               "scale (f32 f32) is not used on ops_later_wrong:0: "
                               "in the admission test, "));
        assert_int_equal(admission("ops_later_wrong", "withdrawn"), 1);
        hw_close(context);
    }
}

/* After a failure the plugin is tried again, now and then; what was right stays known, also if it
 * was found when the verdict did not count any more. */
static void what_is_found_later(void **state)
{
    float x[2] = { 1, 2 }, y[2];
    const struct hw_layernorm op = layernorm_of(x, y);
    (void)state;
    begin("expired", "ops_later_wrong");
    start("ops_later_wrong,ops_right", "child");
    scale_on(queue);
    assert_int_equal(runs(), 2);
    clock_time += 10;
    assert_int_equal(hw_layernorm(queue, &op), HW_UNSUPPORTED);
    assert_int_equal(runs(), 3);
    hw_close(context);
    start("ops_later_wrong,ops_right", "child");
    assert_int_equal(runs(), 4);
    assert_int_equal(hw_layernorm(queue, &op), HW_UNSUPPORTED);
    assert_int_equal(runs(), 4);
    scale_on(queue); /* which has failed, and is tested again */
    assert_int_equal(runs(), 5);
    assert_int_equal(fallbacks(HW_OP_SCALE), 1);
    hw_close(context);
}

/* The op goes, for all dtypes, and this process stays. */
static void check_ended(const char *plugin, const char *state, const char *words)
{
    float y[COUNT];
    const struct hw_scale op = scale_to(y);
    begin(plugin, plugin);
    start(plugin, "child");
    assert_int_equal(hw_scale(queue, &op), HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), state));
    if (!strstr(hw_message(), words))
        fail_msg("%s", hw_message());
    assert_non_null(strstr(log_text, "scale (* *) is not used"));
    const long before = runs();
    struct hw_scale other = op;
    other.x.dtype = other.y.dtype = HW_BF16;
    other.x.stride[0] = other.y.stride[0] = 2;
    assert_int_equal(hw_scale(queue, &other), HW_UNSUPPORTED);
    assert_int_equal(runs(), before); /* what is known of the op is known of them */
    const struct hw_silu silu = { .x = hw_host_1d(input, HW_F32, COUNT),
                                  .y = hw_host_1d(y, HW_F32, COUNT) };
    assert_int_equal(hw_silu(queue, &silu), HW_OK);
    hw_close(context);
}

static void one_that_crashes(void **state)
{
    (void)state;
    check_ended("ops_later_crashes", "the admission test withdrew it",
                "segmentation fault");
}

static void one_that_hangs(void **state)
{
    (void)state;
    check_ended("ops_later_hangs", "is repeated at a later start", "within 12 seconds");
}

/* Before it is recorded, so that no launch waits. */
static void in_a_graph(void **state)
{
    float y[COUNT] = { 0 };
    const struct hw_scale op = scale_to(y);
    struct hw_graph *graph;
    (void)state;
    begin("graph", "ops_later_wrong");
    start("ops_later_wrong,ops_right", "child");
    assert_int_equal(hw_queue_record(queue), HW_OK);
    assert_int_equal(runs(), 1);
    assert_int_equal(hw_scale(queue, &op), HW_OK);
    assert_int_equal(runs(), 2);
    assert_int_equal(hw_queue_end(queue, &graph), HW_OK);
    assert_int_equal(hw_graph_launch(graph, queue), HW_OK);
    assert_int_equal(hw_queue_wait(queue), HW_OK);
    assert_true(is_scaled(y));
    assert_int_equal(fallbacks(HW_OP_SCALE), 1);
    hw_graph_free(graph);
    hw_close(context);
}

static void *scale_beside(void *on)
{
    float y[COUNT] = { 0 };
    const struct hw_scale op = scale_to(y);
    const bool good = !hw_scale(on, &op) && is_scaled(y);
    return good ? on : NULL;
}

/* One has it tested, and the other waits. */
static void two_threads_at_once(void **state)
{
    struct hw_queue *other;
    pthread_t thread;
    void *good;
    (void)state;
    begin("threads", "ops_later_slow");
    start("ops_later_slow", "child");
    assert_int_equal(hw_queue_open(hw_device_default(context), NULL, &other), HW_OK);
    assert_int_equal(pthread_create(&thread, NULL, scale_beside, other), 0);
    scale_on(queue);
    pthread_join(thread, &good);
    assert_ptr_equal(good, other);
    assert_int_equal(runs(), 2);
    hw_close(context);
}

/* The plugin is in a process of its own, and is tested in another one. */
static void in_a_worker(void **state)
{
    (void)state;
    begin("worker", "ops_later_wrong");
    worker = "ops_later_wrong";
    start("ops_later_wrong,ops_right", "child");
    worker = NULL;
    scale_on(queue);
    assert_int_equal(fallbacks(HW_OP_SCALE), 1);
    assert_int_equal(runs(), 2);
    hw_close(context);
}

/* Dtypes that no case has are taken for those of the nearest one. */
static void the_nearest_form(void **state)
{
    float y[COUNT], weight[COUNT] = { 0 };
    struct hw_layernorm op = { .x = hw_host_1d(input, HW_F32, COUNT),
                               .weight = hw_host_1d(weight, HW_F32, COUNT),
                               .y = hw_host_1d(y, HW_F32, COUNT),
                               .eps = 1 };
    (void)state;
    begin("nearest", "ops_later_right");
    start("ops_later_right", "child");
    assert_int_equal(hw_layernorm(queue, &op), HW_UNSUPPORTED);
    assert_int_equal(runs(), 2); /* of x, weight and bias */
    op.weight = (struct hw_tensor){ 0 };
    assert_int_equal(hw_layernorm(queue, &op), HW_UNSUPPORTED);
    assert_int_equal(runs(), 2);
    hw_close(context);
}

/* Other kernels read them, which the test does not have. */
static void packed_operands(void **state)
{
    float a[2] = { 1, 2 }, b[2] = { 3, 4 }, c[1];
    int32_t ids[1] = { 0 };
    const struct hw_tensor weights = hw_host_3d(b, HW_F32, 1, 1, 2);
    struct hw_matmul_id op = { .a = hw_host_3d(a, HW_F32, 1, 1, 2),
                               .ids = { .data = ids,
                                        .dtype = HW_I32,
                                        .rank = 2,
                                        .extent = { 1, 1 },
                                        .stride = { 4, 4 } },
                               .c = hw_host_3d(c, HW_F32, 1, 1, 1) };
    (void)state;
    begin("packed", "ops_later_right");
    start("ops_later_right", "child");
    if (hw_tensor_pack(queue, &weights, &op.b))
        fail_msg("%s", hw_message());
    assert_int_equal(hw_matmul_id(queue, &op), HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), "nothing at all"));
    assert_int_equal(runs(), 1);
    hw_buffer_free(op.b.buffer);
    op.b = weights;
    assert_int_equal(hw_matmul_id(queue, &op), HW_UNSUPPORTED);
    assert_int_equal(runs(), 2);
    hw_close(context);
}

/* One that begins before hw_device_reset() and ends after it does not count any more. */
static void a_reset_meanwhile(void **state)
{
    const struct timespec moment = { .tv_nsec = 1000000 };
    pthread_t thread;
    void *good;
    (void)state;
    begin("reset", "ops_later_hangs");
    start("ops_later_hangs", "child");
    assert_int_equal(pthread_create(&thread, NULL, scale_beside, queue), 0);
    while (runs() < 2) /* has begun, and hangs */
        nanosleep(&moment, NULL);
    assert_int_equal(hw_device_reset(hw_device_default(context)), HW_OK);
    pthread_join(thread, &good);
    assert_ptr_equal(good, queue); /* it was computed there, where it does not hang */
    assert_null(strstr(log_text, "is not used on"));
    scale_on(queue);
    assert_int_equal(fallbacks(HW_OP_SCALE), 0);
    hw_close(context);
}

/* A result from there says nothing about the device in use. */
static void another_device_in_its_place(void **state)
{
    (void)state;
    begin("swapped", "ops_later_swapped");
    start("ops_later_swapped", "child");
    const int64_t left = admission("ops_later_swapped", "untested");
    scale_on(queue);
    assert_int_equal(runs(), 2);
    assert_non_null(strstr(log_text, "is used on ops_later_swapped:0 untested"));
    assert_non_null(
        strstr(log_text, "the name of its device 0 has changed since the start"));
    assert_int_equal(admission("ops_later_swapped", "untested"), left);
    hw_close(context);
}

/* Who waits is told why, once. */
static void the_log_says_so(void **state)
{
    float x[2] = { 1, 2 }, y[2];
    const struct hw_layernorm op = layernorm_of(x, y);
    static const char words[] = "testing ops of ops_later_right:0 before their first use";
    (void)state;
    begin("says", "ops_later_right");
    start("ops_later_right", "child");
    assert_null(strstr(log_text, words));
    scale_on(queue);
    const char *line = strstr(log_text, words);
    assert_non_null(line);
    assert_int_equal(hw_layernorm(queue, &op), HW_UNSUPPORTED);
    assert_int_equal(runs(), 3);
    assert_null(strstr(line + 1, words));
    assert_null(strstr(line, "each of 0 "));
    hw_close(context);
    start("ops_later_right", "child");
    scale_on(queue);
    assert_null(strstr(log_text, words));
    hw_close(context);
}

/* Questions start nothing, nor does an op that the user wants whatever the test says. */
static void what_starts_nothing(void **state)
{
    float y[COUNT];
    const struct hw_scale op = scale_to(y);
    (void)state;
    begin("nothing", "ops_later_wrong");
    start("ops_later_wrong", "child");
    assert_int_equal(
        hw_device_supports(hw_queue_device(queue), HW_OP_SCALE, &op, sizeof op), HW_OK);
    assert_int_equal(hw_device_reset(hw_queue_device(queue)), HW_OK);
    assert_int_equal(hw_scale(queue, &op), HW_OK);
    assert_false(is_scaled(y));
    assert_int_equal(runs(), 1);
    hw_close(context);
    start("ops_later_wrong", "inproc");
    assert_int_equal(hw_scale(queue, &op), HW_OK);
    assert_int_equal(runs(), 1);
    hw_close(context);
}

/* The file that would be tested is not the loaded one: the op is used, and the log says so. */
static void a_file_that_has_changed(void **state)
{
    const struct timespec then[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    (void)state;
    begin("changed", "ops_later_right");
    start("ops_later_right", "child");
    assert_int_equal(utimensat(AT_FDCWD, lair("changed/hw_ops_later_right.so"), then, 0),
                     0);
    scale_on(queue);
    assert_int_equal(runs(), 1);
    assert_non_null(strstr(log_text, "is used on ops_later_right:0 untested"));
    assert_non_null(strstr(log_text, "the file or the driver has changed since the start"));
    assert_true(admission("ops_later_right", "untested") > 0);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_op_is_tested_once),
        cmocka_unit_test(a_wrong_op_is_never_used),
        cmocka_unit_test(what_is_found_later),
        cmocka_unit_test(one_that_crashes),
        cmocka_unit_test(one_that_hangs),
        cmocka_unit_test(in_a_graph),
        cmocka_unit_test(two_threads_at_once),
        cmocka_unit_test(in_a_worker),
        cmocka_unit_test(the_nearest_form),
        cmocka_unit_test(packed_operands),
        cmocka_unit_test(a_reset_meanwhile),
        cmocka_unit_test(another_device_in_its_place),
        cmocka_unit_test(the_log_says_so),
        cmocka_unit_test(what_starts_nothing),
        cmocka_unit_test(a_file_that_has_changed),
    };
    return cmocka_run_group_tests(tests, lair_open, lair_close);
}
