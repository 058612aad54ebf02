/* SPDX-License-Identifier: MIT */
/* test_cost.c - calls on host memory that the CPU computes because it is expected to be faster:
 * which calls, of which queues. tests/fixtures/distant.c is the device. */
#include "call/queue.h"
#include "route/cost.h"
#include "world.h"

/* ---- a context whose default device is the distant one ---- */

struct scene {
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
};

static void open_scene(struct scene *s, struct hw_options options)
{
    if (!options.backends)
        options.backends = "distan*,cpu";
    options.probe = "inproc";
    ok(open_options(options, &s->context));
    s->device = hw_device_default(s->context);
    assert_string_equal(hw_device_backend(s->device), "distant");
    ok(hw_queue_open(s->device, NULL, &s->queue));
}

static void close_scene(struct scene *s)
{
    hw_close(s->context);
}

enum { SMALL = 16, LARGE = 4096 };
static float x[LARGE], y[LARGE];

static struct hw_silu silu_of(int64_t n)
{
    fill(x, LARGE);
    memset(y, 0, sizeof y);
    return (struct hw_silu){ .x = hw_host_1d(x, HW_F32, n), .y = hw_host_1d(y, HW_F32, n) };
}

/* Submits the call, and checks its result. */
static void compute(struct hw_queue *queue, int64_t n)
{
    struct hw_silu op = silu_of(n);
    ok(hw_silu(queue, &op));
    ok(hw_queue_wait(queue));
    for (int64_t i = 0; i < n; i++)
        close_to(y[i], silu(x[i]));
}

static uint64_t routed(const struct scene *s)
{
    return calls(s->queue, HW_OP_SILU).routed;
}

static struct hw_route_info route_of(struct hw_queue *queue, int64_t n)
{
    const struct hw_silu op = silu_of(n);
    struct hw_route_info info = { .size = sizeof info };
    ok(hw_queue_route(queue, HW_OP_SILU, &op, sizeof op, &info));
    return info;
}

/* ---- which calls ---- */

static void estimates_route_only_what_is_small(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    const struct hw_call_stats stats = calls(s.queue, HW_OP_SILU);
    assert_int_equal(stats.calls, 1);
    assert_int_equal(stats.staged_bytes, 0);
    assert_int_equal(stats.fallbacks, 0);
    const struct hw_route_info small = route_of(s.queue, SMALL);
    assert_string_equal(hw_device_backend(small.device), "cpu");
    assert_true(2 * small.cpu <= small.own);
    assert_true(small.moved == 2.0 * SMALL * sizeof(float));
    assert_true(report_has(s.context, "\"routed\":1"));
    compute(s.queue, LARGE);
    assert_int_equal(routed(&s), 1);
    const struct hw_route_info large = route_of(s.queue, LARGE);
    assert_true(large.device == s.device);
    assert_true(2 * large.cpu > large.own);
    close_scene(&s);
}

/* To read some rows takes longer on the CPU than a copy of the rows would, but not than a copy of
 * the table that they are in. */
static void what_is_moved_counts(void **state)
{
    enum { ROWS = 64, COLUMNS = 256, SOME = 40 };
    static float table[ROWS][COLUMNS], some[SOME][COLUMNS];
    static int32_t rows[SOME];
    (void)state;
    struct hw_get_rows op = { .table = hw_host_2d(table, HW_F32, SOME, COLUMNS),
                              .rows = hw_host_1d(rows, HW_I32, SOME),
                              .y = hw_host_2d(some, HW_F32, SOME, COLUMNS) };
    const struct hw_route_info few = cost_of(HW_OP_GET_ROWS, &op);
    op.table.extent[0] = 100 * ROWS; /* nothing is read */
    const struct hw_route_info many = cost_of(HW_OP_GET_ROWS, &op);
    assert_false(cost_favours_cpu(&few));
    assert_true(cost_favours_cpu(&many));
    assert_true(many.cpu == few.cpu);
}

static void products_count_multiplications(void **state)
{
    static float a[8], b[8];
    (void)state;
    struct hw_matmul op = { .a = hw_host_2d(a, HW_F32, 2, 3),
                            .b = hw_host_2d(b, HW_F32, 3, 2),
                            .c = hw_host_2d(a, HW_F32, 2, 2) };
    const double least = cost_of(HW_OP_MATMUL, &op).cpu;
    op.a.extent[1] = op.b.extent[0] = 3000003;
    const double longer = cost_of(HW_OP_MATMUL, &op).cpu - least;
    assert_true(longer > 0.0119 && longer < 0.0121); /* 12 million at 10^9 per second */
}

static void resident_tensors_stay(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_tensor there = device_f32(s.device, (int64_t)SMALL, END);
    struct hw_silu op = silu_of(SMALL);
    op.y = there; /* one operand is enough */
    struct hw_route_info info = { .size = sizeof info };
    ok(hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, &info));
    assert_true(info.device == s.device);
    assert_non_null(strstr(info.why, "buffer"));
    ok(hw_silu(s.queue, &op));
    ok(hw_queue_wait(s.queue));
    ok(hw_silu(s.queue, &(struct hw_silu){ .x = there, .y = there }));
    ok(hw_queue_wait(s.queue));
    assert_int_equal(routed(&s), 0);
    assert_int_equal(calls(s.queue, HW_OP_SILU).calls, 2);
    compute(s.queue, SMALL); /* without it, the same call moves */
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

static void graphs_stay(void **state)
{
    struct scene s;
    struct hw_graph *graph;
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_silu op = silu_of(SMALL);
    ok(hw_queue_record(s.queue));
    ok(hw_silu(s.queue, &op));
    assert_non_null(strstr(route_of(s.queue, SMALL).why, "graph"));
    ok(hw_queue_end(s.queue, &graph));
    ok(hw_graph_launch(graph, s.queue));
    ok(hw_queue_wait(s.queue));
    assert_int_equal(calls(s.queue, HW_OP_SILU).calls, 1);
    assert_int_equal(routed(&s), 0);
    close_to(y[3], silu(x[3]));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* In place, and through a view whose elements are not adjacent. */
static void results_land_where_they_belong(void **state)
{
    struct scene s;
    float z[24];
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    fill(z, 24);
    struct hw_tensor whole = hw_host_2d(z, HW_F32, 4, 6), turned;
    ok(hw_tensor_slice(&turned, &whole, 1, 1, 3));
    ok(hw_tensor_transpose(&turned, &turned, 0, 1));
    ok(hw_silu(s.queue, &(struct hw_silu){ .x = turned, .y = turned }));
    ok(hw_queue_wait(s.queue));
    fill(x, 24);
    for (int i = 0; i < 24; i++)
        close_to(z[i], i % 6 == 1 || i % 6 == 2 ? silu(x[i]) : x[i]);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* A call that is independent of the queue's pending work does not wait for it. A call that reads a
 * pending result waits, as it would on the device, and may then be computed on the CPU. */
static void work_outstanding_is_not_waited_for(void **state)
{
    struct scene s;
    float a[SMALL], b[SMALL];
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_silu large = silu_of(LARGE);
    fill(a, SMALL);
    ok(hw_silu(s.queue, &large));
    const struct hw_silu other = { .x = hw_host_1d(a, HW_F32, SMALL),
                                   .y = hw_host_1d(b, HW_F32, SMALL) };
    struct hw_route_info info = { .size = sizeof info };
    ok(hw_queue_route(s.queue, HW_OP_SILU, &other, sizeof other, &info));
    assert_non_null(strstr(info.why, "outstanding"));
    ok(hw_silu(s.queue, &other));
    assert_int_equal(routed(&s), 0);
    ok(hw_silu(s.queue, &(struct hw_silu){ .x = hw_host_1d(y, HW_F32, SMALL),
                                           .y = hw_host_1d(y, HW_F32, SMALL) }));
    assert_int_equal(routed(&s), 1);
    ok(hw_queue_wait(s.queue));
    for (int i = 0; i < SMALL; i++) {
        close_to(b[i], silu(a[i]));
        close_to(y[i], silu(silu(x[i])));
    }
    close_to(y[SMALL], silu(x[SMALL]));
    close_scene(&s);
}

static void other_work_counts(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    ok(hw_extension_call(s.queue, "distant.work", NULL, 0));
    assert_non_null(strstr(route_of(s.queue, SMALL).why, "outstanding"));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 0);
    ok(hw_queue_wait(s.queue));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* ---- which queues ---- */

static void expect_stay(struct scene *s, const char *why)
{
    const char *said = route_of(s->queue, SMALL).why;
    if (!strstr(said, why))
        fail_msg("it stays because \"%s\", not because of \"%s\"", said, why);
    compute(s->queue, SMALL);
    assert_int_equal(routed(s), 0);
    assert_true(route_of(s->queue, SMALL).device == s->device);
    close_scene(s);
}

static void a_device_that_is_named_is_not_left(void **state)
{
    struct scene s;
    struct hw_device *found;
    (void)state;
    open_scene(&s, (struct hw_options){ .backends = "distant,cpu" });
    expect_stay(&s, "named");
    open_scene(&s, (struct hw_options){ .backends = "distan*:0,cpu" });
    expect_stay(&s, "named");
    open_scene(&s, (struct hw_options){ .require = "distant" });
    expect_stay(&s, "named");
    open_scene(&s, (struct hw_options){ 0 });
    ok(hw_device_find(s.context, "distant", &found));
    hw_queue_close(s.queue);
    ok(hw_queue_open(found, NULL, &s.queue));
    expect_stay(&s, "named");
}

static void a_device_that_is_picked_is_not_left(void **state)
{
    struct scene s;
    (void)state;
    ok(open_options((struct hw_options){ .backends = "distan*,cpu", .probe = "inproc" },
                    &s.context));
    s.device = hw_device_at(s.context, 0);
    ok(hw_queue_open(s.device, NULL, &s.queue));
    expect_stay(&s, "hw_device_default");
}

static void settings_keep_calls_on_the_device(void **state)
{
    struct scene s;
    (void)state;
    ok(open_options((struct hw_options){ .backends = "distan*,cpu",
                                         .fallback = "error",
                                         .probe = "inproc" },
                    &s.context));
    s.device = hw_device_default(s.context);
    ok(hw_queue_open(s.device, NULL, &s.queue));
    expect_stay(&s, "HW_FALLBACK=error");
    open_scene(&s, (struct hw_options){ .backends = "distan*" });
    expect_stay(&s, "not selected");
}

/* Choices that are made after a queue was opened do not count for it. */
static void naming_a_device_later_changes_nothing(void **state)
{
    struct scene s;
    struct hw_device *found;
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    ok(hw_device_find(s.context, "distant", &found));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* ---- at once ---- */

enum { THREADS = 4, ROUNDS = 40 };

static void *use_a_queue(void *argument)
{
    struct scene *s = argument;
    struct hw_queue *queue;
    float in[SMALL], out[SMALL];
    fill(in, SMALL);
    if (hw_queue_open(hw_device_default(s->context), NULL, &queue))
        return "no queue";
    for (int i = 0; i < ROUNDS; i++) {
        struct hw_silu op = { .x = hw_host_1d(in, HW_F32, SMALL),
                              .y = hw_host_1d(out, HW_F32, SMALL) };
        struct hw_route_info info = { .size = sizeof info };
        if (hw_silu(queue, &op) || hw_queue_wait(queue) ||
            hw_queue_route(queue, HW_OP_SILU, &op, sizeof op, &info))
            return "a call failed";
    }
    struct hw_call_stats stats = { .size = sizeof stats };
    hw_queue_calls(queue, HW_OP_SILU, &stats);
    hw_queue_close(queue);
    return stats.routed == ROUNDS ? NULL : "not all calls were routed";
}

static void threads_route_at_once(void **state)
{
    struct scene s;
    pthread_t thread[THREADS];
    (void)state;
    ok(open_options((struct hw_options){ .backends = "distan*,cpu", .probe = "inproc" },
                    &s.context));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_a_queue, &s), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        if (wrong)
            fail_msg("%s", (const char *)wrong);
    }
    assert_true(report_has(s.context, "\"routed\":160"));
    hw_close(s.context);
}

/* Calls routed to the CPU are not compared: the CPU is also the reference. */
static void routed_calls_are_not_compared(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, (struct hw_options){ .shadow = "1/1" });
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    assert_int_equal(calls(s.queue, HW_OP_SILU).compared, 0);
    compute(s.queue, LARGE);
    assert_int_equal(calls(s.queue, HW_OP_SILU).compared, 1);
    close_scene(&s);
}

static void questions_are_checked(void **state)
{
    struct scene s;
    struct hw_silu op = silu_of(SMALL);
    struct hw_route_info info = { .size = sizeof info };
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    fails(HW_INVALID, "queue", hw_queue_route(NULL, HW_OP_SILU, &op, sizeof op, &info));
    fails(HW_INVALID, "info", hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, NULL));
    info.size = 0;
    fails(HW_INVALID, "size", hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, &info));
    info.size = sizeof info;
    op.y.extent[0]++;
    fails(HW_INVALID, "silu", hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, &info));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_route_only_what_is_small),
        cmocka_unit_test(what_is_moved_counts),
        cmocka_unit_test(products_count_multiplications),
        cmocka_unit_test(resident_tensors_stay),
        cmocka_unit_test(graphs_stay),
        cmocka_unit_test(results_land_where_they_belong),
        cmocka_unit_test(work_outstanding_is_not_waited_for),
        cmocka_unit_test(other_work_counts),
        cmocka_unit_test(a_device_that_is_named_is_not_left),
        cmocka_unit_test(a_device_that_is_picked_is_not_left),
        cmocka_unit_test(settings_keep_calls_on_the_device),
        cmocka_unit_test(naming_a_device_later_changes_nothing),
        cmocka_unit_test(threads_route_at_once),
        cmocka_unit_test(routed_calls_are_not_compared),
        cmocka_unit_test(questions_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
