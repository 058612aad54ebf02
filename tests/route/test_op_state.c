/* SPDX-License-Identifier: MIT */
/* test_op_state.c - an op that fails on submission is not tried on that device again, by any queue
 * or graph, until hw_device_reset(). */
#include "call/queue.h"
#include "sum.h"

#include <stdio.h>

/* ---- ops that fail ---- */

/* Both ops overwrite their output before they fail. */
static _Atomic int32_t answer;
static _Atomic uint32_t asked;

static int32_t broken(const struct hw_tensor *y)
{
    asked++;
    if (!y->buffer)
        memset(hw_tensor_address(y), 0xff, hw_tensor_bytes(y));
    return plugin_message_set(answer, "the driver says 700");
}

static int32_t broken_add(void *device, void *queue, const struct hw_add *op)
{
    (void)device, (void)queue;
    return broken(&op->y);
}

static int32_t broken_silu(void *device, void *queue, const struct hw_silu *op)
{
    (void)device, (void)queue;
    return broken(&op->y);
}

static void break_queue(struct hw_queue *queue, enum hw_status status)
{
    without_plans(queue->device);
    queue->ops.add = broken_add;
    queue->ops.silu = broken_silu;
    answer = (int32_t)status;
    asked = 0;
}

/* ---- tests ---- */

static void a_failing_op_is_not_tried_again(void **state)
{
    static const enum hw_status statuses[] = { HW_DRIVER, HW_INTERNAL, HW_IO };
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct world w;
        world_open(&w, NULL, NULL);
        const struct sum sum = sum_on(w.on_near);
        add_right(&sum);
        break_queue(w.on_near, statuses[i]);
        for (int k = 0; k < 3; k++)
            add_right(&sum);
        assert_int_equal(asked, 1);
        const struct hw_call_stats s = calls(w.on_near, HW_OP_ADD);
        assert_int_equal(s.calls, 4);
        assert_int_equal(s.fallbacks, 3);
        assert_int_equal(s.failed, 1);
        /* One line for the fallback, one for the demotion, with its cause and the remedy. */
        assert_int_equal(w.log_lines, 2);
        assert_non_null(
            strstr(w.log, "add (f32 f32 f32) is not tried again on discrete:0"));
        assert_non_null(strstr(w.log, "the driver says 700. Remedy: "));
        assert_true(report_has(
            w.context,
            "\"demotions\":[{\"op\":\"add\",\"dtypes\":\"f32 f32 f32\","
            "\"device\":\"discrete:0\",\"cause\":\"failed\",\"why\":\"the driver says 700\","
            "\"remedy\":\"update the driver or the plugin\"}]"));
        assert_true(report_has(w.context, "\"failed\":1"));
        world_close(&w);
    }
}

/* This includes calls that the other queue remembers. */
static void another_queue_does_not_try_it(void **state)
{
    struct world w;
    struct hw_queue *other, *later;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_queue_open(w.near, NULL, &other));
    const struct sum first = sum_on(w.on_near), second = sum_on(other);
    for (int i = 0; i < 3; i++) {
        add_right(&first);
        add_right(&second);
    }
    break_queue(w.on_near, HW_DRIVER);
    break_queue(other, HW_DRIVER);
    add_right(&first);
    add_right(&second);
    ok(hw_queue_open(w.near, NULL, &later));
    break_queue(later, HW_DRIVER);
    const struct sum third = sum_on(later);
    add_right(&third);
    assert_int_equal(asked, 0); /* by the queue that was opened last */
    add_right(&first);
    add_right(&second);
    assert_int_equal(asked, 0);
    assert_int_equal(calls(other, HW_OP_ADD).failed, 0);
    assert_int_equal(calls(other, HW_OP_ADD).fallbacks, 2);
    world_close(&w);
}

/* The device computes other ops, and this op on other dtypes. */
static void only_what_failed_is_demoted(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    const struct sum sum = sum_on(w.on_near);
    break_queue(w.on_near, HW_DRIVER);
    add_right(&sum);
    struct hw_add half = { 0 };
    const int64_t four = 4;
    ok(hw_tensor_alloc(w.near, 0, HW_F16, 1, &four, &half.a));
    ok(hw_tensor_alloc(w.near, 0, HW_F16, 1, &four, &half.b));
    ok(hw_tensor_alloc(w.near, 0, HW_F16, 1, &four, &half.y));
    ok(hw_add(w.on_near, &half));
    assert_int_equal(asked, 2);
    w.on_near->ops.silu = w.near->plugin->ops.silu;
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = sum.op.a, .y = sum.op.y }));
    assert_int_equal(calls(w.on_near, HW_OP_SILU).fallbacks, 0);
    world_close(&w);
}

static void a_reset_tries_again(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    const struct sum sum = sum_on(w.on_near);
    break_queue(w.on_near, HW_DRIVER);
    add_right(&sum);
    assert_int_equal(hw_device_supports(w.near, HW_OP_ADD, &sum.op, sizeof sum.op),
                     HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(),
                           "it failed or was wrong here before, and is not tried "
                           "again until the program starts anew or calls "
                           "hw_device_reset(): "));
    assert_non_null(strstr(hw_message(), "the driver says 700"));
    ok(hw_device_reset(w.far)); /* of another device: no effect */
    add_right(&sum);
    assert_int_equal(asked, 1);
    ok(hw_device_reset(w.near));
    assert_true(report_has(w.context, "\"demotions\":[]"));
    add_right(&sum);
    assert_int_equal(asked, 2);
    ok(hw_device_reset(w.near));
    w.on_near->ops = w.near->plugin->ops;
    add_right(&sum);
    add_right(&sum);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).fallbacks, 3);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).calls, 5);
    fails(HW_INVALID, "device must not be NULL", hw_device_reset(NULL));
    break_queue(w.on_near, HW_LOST);
    fails(HW_LOST, "add on discrete:0", hw_add(w.on_near, &sum.op));
    fails(HW_LOST, "discrete:0 is lost", hw_device_reset(w.near));
    fails(HW_LOST, "discrete:0 is lost", hw_add(w.on_near, &sum.op));
    const struct sum elsewhere = sum_on(w.on_far);
    add_right(&elsewhere);
    world_close(&w);
}

/* The call fails, because its input may be overwritten. The next call is computed on another
 * device. */
static void ops_in_place_fail_once(void **state)
{
    struct world w;
    float got[4];
    (void)state;
    world_open(&w, NULL, NULL);
    const struct hw_tensor x = put(w.on_near, sum_input, 1, 4);
    const struct hw_silu op = { .x = x, .y = x };
    break_queue(w.on_near, HW_DRIVER);
    fails(HW_DRIVER, "from now on discrete:1 computes this op", hw_silu(w.on_near, &op));
    ok(hw_silu(w.on_near, &op));
    get(w.on_near, &x, got);
    for (int i = 0; i < 4; i++)
        close_to(got[i], silu(sum_input[i]));
    assert_int_equal(asked, 1);
    assert_int_equal(calls(w.on_near, HW_OP_SILU).failed, 1);
    assert_int_equal(calls(w.on_near, HW_OP_SILU).calls, 1);
    world_close(&w);
}

/* An op without a possible fallback is tried each time. */
static void the_last_resort_is_not_demoted(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "error", NULL);
    struct sum sum = sum_on(w.on_near);
    break_queue(w.on_near, HW_DRIVER);
    for (uint32_t i = 0; i < 3; i++)
        fails(HW_DRIVER, "HW_FALLBACK=error", hw_add(w.on_near, &sum.op));
    sum.op.y = sum.op.a;
    fails(HW_DRIVER, "the driver says 700", hw_add(w.on_near, &sum.op));
    assert_int_equal(asked, 4);
    assert_int_equal(w.log_lines, 0);
    world_close(&w);
    world_open(&w, NULL, NULL);
    sum = sum_on(w.on_cpu);
    break_queue(w.on_cpu, HW_DRIVER);
    for (uint32_t i = 0; i < 3; i++)
        fails(HW_DRIVER, "no other device is left", hw_add(w.on_cpu, &sum.op));
    assert_int_equal(asked, 3);
    assert_int_equal(calls(w.on_cpu, HW_OP_ADD).failed, 3);
    w.on_cpu->ops = w.cpu->plugin->ops;
    add_right(&sum);
    assert_true(report_has(w.context, "\"demotions\":[]"));
    world_close(&w);
}

/* The next device fails as well: neither is tried again. */
static void a_second_device_fails_too(void **state)
{
    struct world w;
    struct hw_queue *helper;
    (void)state;
    world_open(&w, NULL, NULL);
    const struct sum sum = sum_on(w.on_near);
    ok(queue_helper(w.on_near, w.far, &helper));
    break_queue(helper, HW_DRIVER);
    break_queue(w.on_near, HW_DRIVER);
    add_right(&sum);
    assert_int_equal(asked, 2);
    add_right(&sum);
    assert_int_equal(asked, 2);
    assert_true(report_has(
        w.context, "\"device\":\"discrete:0\",\"cause\":\"failed\",\"why\":\"the driver"));
    assert_true(report_has(
        w.context, "\"device\":\"discrete:1\",\"cause\":\"failed\",\"why\":\"add on"));
    world_close(&w);
}

/* Three devices fail one after the other in one call: none is tried again. */
static void all_that_fail_are_demoted(void **state)
{
    const struct hw_options options = { .backends = "discrete,null,cpu" };
    static const char *const names[] = { "discrete:0", "discrete:1", "null:0" };
    struct hw_context *context;
    struct hw_device *devices[3];
    struct hw_queue *queues[3];
    (void)state;
    ok(open_options(options, &context));
    for (int i = 0; i < 3; i++) {
        ok(hw_device_find(context, names[i], &devices[i]));
        ok(i ? queue_helper(queues[0], devices[i], &queues[i])
             : hw_queue_open(devices[i], NULL, &queues[i]));
        break_queue(queues[i], HW_DRIVER);
    }
    const struct sum sum = sum_on(queues[0]);
    for (int i = 0; i < 3; i++)
        add_right(&sum);
    assert_int_equal(asked, 3);
    assert_true(report_has(context, "\"device\":\"discrete:1\",\"cause\":\"failed\""));
    assert_true(report_has(context, "\"device\":\"null:0\",\"cause\":\"failed\""));
    hw_close(context);
}

/* The fallback overwrites host memory that the failed call wrote. The device reads host memory. */
static void half_written_outputs_are_overwritten(void **state)
{
    const struct hw_options options = { .backends = "null,cpu" };
    struct hw_context *context;
    struct hw_queue *queue;
    float y[4];
    (void)state;
    ok(open_options(options, &context));
    ok(hw_queue_open(hw_device_default(context), NULL, &queue));
    break_queue(queue, HW_DRIVER);
    const struct hw_tensor x = host_f32(sum_input, (int64_t)4, END);
    ok(hw_add(queue,
              &(struct hw_add){ .a = x, .b = x, .y = host_f32(y, (int64_t)4, END) }));
    ok(hw_queue_wait(queue));
    for (int i = 0; i < 4; i++)
        close_to(y[i], 2 * sum_input[i]);
    assert_int_equal(asked, 1);
    hw_close(context);
}

/* Graphs that the plugin has already built are replayed. Later graphs with this op are not built by
 * the plugin. */
static void graphs_leave_it_to_others(void **state)
{
    struct world w;
    struct hw_graph *before, *after;
    struct hw_graph_info info = { .size = sizeof info };
    (void)state;
    world_open(&w, NULL, NULL);
    const struct sum sum = sum_on(w.on_near);
    ok(hw_queue_record(w.on_near));
    ok(hw_add(w.on_near, &sum.op));
    ok(hw_queue_end(w.on_near, &before));
    ok(hw_graph_info(before, &info));
    assert_int_equal(info.built, 1);
    ok(hw_graph_launch(before, w.on_near));
    assert_true(sum_is_right(&sum));
    assert_int_equal(calls(w.on_near, HW_OP_ADD).fallbacks, 0);
    break_queue(w.on_near, HW_DRIVER);
    add_right(&sum);
    ok(hw_graph_launch(before, w.on_near));
    assert_true(sum_is_right(&sum));
    assert_int_equal(calls(w.on_near, HW_OP_ADD).fallbacks, 2);
    ok(hw_queue_record(w.on_near));
    ok(hw_add(w.on_near, &sum.op));
    ok(hw_queue_end(w.on_near, &after));
    ok(hw_graph_info(after, &info));
    assert_int_equal(info.built, 0);
    ok(hw_graph_launch(after, w.on_near));
    assert_true(sum_is_right(&sum));
    assert_int_equal(calls(w.on_near, HW_OP_ADD).fallbacks, 3);
    assert_int_equal(asked, 1);
    ok(hw_device_reset(w.near));
    ok(hw_graph_launch(before,
                       w.on_near)); /* as a whole again: it does not use the queue's ops */
    assert_int_equal(calls(w.on_near, HW_OP_ADD).fallbacks, 3);
    world_close(&w);
}

/* ---- in parallel ---- */

enum { THREADS = 4, ROUNDS = 200 };

struct job {
    struct world *world;
    struct hw_queue *queue;
    struct sum sum;
    char wrong[256];
};

/* The op fails occasionally, on any queue, while another thread resets the device. */
static _Atomic uint32_t turn;

static int32_t moody_add(void *device, void *queue, const struct hw_add *op)
{
    (void)device, (void)queue, (void)op;
    return turn++ % 7 ? HW_OK : plugin_message_set(HW_DRIVER, "not now");
}

static void *submit_sums(void *user)
{
    struct job *job = user;
    for (int i = 0; i < ROUNDS; i++)
        if (hw_add(job->queue, &job->sum.op))
            snprintf(job->wrong, sizeof job->wrong, "%s", hw_message());
    return NULL;
}

static void *reset_and_report(void *user)
{
    struct job *job = user;
    static char text[1 << 14];
    for (int i = 0; i < ROUNDS; i++) {
        if (hw_device_reset(job->world->near))
            snprintf(job->wrong, sizeof job->wrong, "%s", hw_message());
        hw_explain(job->world->context, text, sizeof text);
    }
    return NULL;
}

static void threads_demote_and_reset(void **state)
{
    struct world w;
    struct job jobs[THREADS + 1];
    pthread_t threads[THREADS + 1];
    (void)state;
    world_open(&w, "allow", NULL);
    for (int i = 0; i <= THREADS; i++) {
        jobs[i] = (struct job){ .world = &w };
        if (i == THREADS)
            break;
        ok(hw_queue_open(w.near, NULL, &jobs[i].queue));
        jobs[i].sum = sum_on(jobs[i].queue);
        jobs[i].queue->ops.add = moody_add;
    }
    for (int i = 0; i <= THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < THREADS ? submit_sums : reset_and_report,
                                        &jobs[i]),
                         0);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i <= THREADS; i++)
        assert_string_equal(jobs[i].wrong, "");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(calls(jobs[i].queue, HW_OP_ADD).calls, ROUNDS);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_op_is_not_tried_again),
        cmocka_unit_test(another_queue_does_not_try_it),
        cmocka_unit_test(only_what_failed_is_demoted),
        cmocka_unit_test(a_reset_tries_again),
        cmocka_unit_test(ops_in_place_fail_once),
        cmocka_unit_test(the_last_resort_is_not_demoted),
        cmocka_unit_test(a_second_device_fails_too),
        cmocka_unit_test(all_that_fail_are_demoted),
        cmocka_unit_test(half_written_outputs_are_overwritten),
        cmocka_unit_test(graphs_leave_it_to_others),
        cmocka_unit_test(threads_demote_and_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
