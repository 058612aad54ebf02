/* SPDX-License-Identifier: MIT */
/* test_shadow.c - HW_SHADOW: one of N calls of each op is compared with the CPU plugin. A wrong op
 * is withdrawn and the caller gets the right result; a correct op is kept. */
#define _POSIX_C_SOURCE 200809L
#include "call/queue.h"
#include "sum.h"

/* ---- a world that compares ---- */

static enum hw_status open_with(struct world *w, const char *backends, const char *shadow,
                                const char *fallback)
{
    memset(w, 0, sizeof *w);
    return open_options(
        (struct hw_options){ .backends = backends, .fallback = fallback, .shadow = shadow },
        &w->context);
}

static void open_shadow(struct world *w, const char *shadow, const char *fallback)
{
    ok(open_with(w, "discrete,cpu", shadow, fallback));
    ok(hw_device_find(w->context, "cpu", &w->cpu));
    ok(hw_device_find(w->context, "discrete:0", &w->near));
    ok(hw_queue_open(w->cpu, NULL, &w->on_cpu));
    ok(hw_queue_open(w->near, NULL, &w->on_near));
}

/* ---- lies ---- */

static uint32_t lies_left, asked;
static int32_t (*honest_add)(void *device, void *queue, const struct hw_add *op);
static int32_t (*honest_silu)(void *device, void *queue, const struct hw_silu *op);

/* Adds the first operand twice, in the queue's order. */
static int32_t lying_add(void *device, void *queue, const struct hw_add *op)
{
    struct hw_add other = *op;
    asked++;
    if (lies_left && lies_left--)
        other.b = op->a;
    return honest_add(device, queue, &other);
}

/* Does not write y. */
static int32_t lazy_silu(void *device, void *queue, const struct hw_silu *op)
{
    (void)device, (void)queue, (void)op;
    asked++;
    return HW_OK;
}

static void make_lie(struct hw_queue *queue)
{
    honest_add = queue->device->plugin->ops.add;
    honest_silu = queue->device->plugin->ops.silu;
    queue->ops.add = lying_add;
    lies_left = UINT32_MAX;
    asked = 0;
}

/* ---- tests ---- */

static void a_lying_op_is_withdrawn(void **state)
{
    struct world w;
    struct hw_queue *other;
    (void)state;
    open_shadow(&w, "1/1", NULL);
    const struct sum sum = sum_on(w.on_near);
    make_lie(w.on_near);
    for (int i = 0; i < 3; i++) {
        add_right(&sum);
    }
    assert_int_equal(asked, 1);
    const struct hw_call_stats s = calls(w.on_near, HW_OP_ADD);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.compared, 1);
    assert_int_equal(s.wrong, 1);
    assert_int_equal(s.fallbacks, 3);
    assert_int_equal(s.failed, 0);
    assert_true(report_has(w.context,
                           "\"op\":\"add\",\"dtypes\":\"f32 f32 f32\",\"device\":"
                           "\"discrete:0\",\"cause\":\"wrong\",\"why\":\"with a "
                           "f32 [1, 4], b f32 [1, 4], y f32 [1, 4], y[0,0] is 2, "
                           "should be 11 (HW_SHADOW)\""));
    assert_true(report_has(w.context, "\"compared\":1,\"wrong\":1"));
    /* Withdrawn on other queues, too, until the reset. */
    ok(hw_queue_open(w.near, NULL, &other));
    make_lie(other);
    const struct sum again = sum_on(other);
    ok(hw_add(other, &again.op));
    assert_int_equal(asked, 0);
    ok(hw_device_reset(w.near));
    lies_left = 0;
    add_right(&again);
    assert_int_equal(asked, 1);
    assert_int_equal(calls(other, HW_OP_ADD).compared, 1);
    assert_int_equal(calls(other, HW_OP_ADD).wrong, 0);
    world_close(&w);
}

/* The result is right, although the op has overwritten its input. */
static void in_place(void **state)
{
    struct world w;
    float got[4];
    (void)state;
    open_shadow(&w, "1/1", "allow");
    make_lie(w.on_near);
    struct sum sum = sum_on(w.on_near);
    sum.op.y = sum.op.a;
    add_right(&sum);
    w.on_near->ops.silu = lazy_silu;
    const struct hw_tensor x = put(w.on_near, sum_input, 1, 4);
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = x, .y = x }));
    get(w.on_near, &x, got);
    for (int i = 0; i < 4; i++)
        close_to(got[i], silu(sum_input[i]));
    assert_int_equal(calls(w.on_near, HW_OP_SILU).wrong, 1);
    world_close(&w);
}

/* Operands in host memory, and views whose gaps must not change. */
static void hosts_and_views(void **state)
{
    struct world w;
    float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[8] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    (void)state;
    open_shadow(&w, "1/1", "allow");
    make_lie(w.on_near);
    struct hw_add op = { .a = host_f32(x, (int64_t)4, (int64_t)2, END),
                         .b = host_f32(x, (int64_t)4, (int64_t)2, END),
                         .y = host_f32(y, (int64_t)4, (int64_t)2, END) };
    ok(hw_tensor_slice(&op.a, &op.a, 1, 0, 1));
    ok(hw_tensor_slice(&op.b, &op.b, 1, 1, 2));
    ok(hw_tensor_slice(&op.y, &op.y, 1, 1, 2));
    ok(hw_add(w.on_near, &op));
    ok(hw_queue_wait(w.on_near));
    for (int i = 0; i < 8; i++)
        close_to(y[i], i % 2 ? x[i] + x[i - 1] : -1);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).wrong, 1);
    world_close(&w);
}

/* Without a fallback, the call fails instead of returning a wrong result. */
static void without_a_fallback(void **state)
{
    struct world w;
    (void)state;
    open_shadow(&w, "1/1", "error");
    const struct sum sum = sum_on(w.on_near);
    make_lie(w.on_near);
    fails(HW_INTERNAL, "add on discrete:0 computes wrong results: with a f32 [1, 4]",
          hw_add(sum.queue, &sum.op));
    fails(HW_UNSUPPORTED, "HW_FALLBACK=error", hw_add(sum.queue, &sum.op));
    assert_int_equal(asked, 1);
    world_close(&w);
}

/* One of N calls of each op is compared, always including the first, and the same ones on each
 * queue. */
static void a_sample_is_compared(void **state)
{
    struct world w;
    (void)state;
    open_shadow(&w, "1/10", NULL);
    const struct sum sum = sum_on(w.on_near);
    const struct hw_tensor y = put(w.on_near, sum_input, 1, 4);
    uint64_t first[100];
    for (int k = 0; k < 2; k++) {
        struct hw_queue *queue;
        ok(hw_queue_open(w.near, NULL, &queue));
        for (int i = 0; i < 100; i++) {
            ok(hw_add(queue, &sum.op));
            const uint64_t compared = calls(queue, HW_OP_ADD).compared;
            assert_true(k == 0 || compared == first[i]);
            first[i] = compared;
        }
        assert_int_equal(first[0], 1);
        assert_int_equal(first[99], 10);
        ok(hw_silu(queue, &(struct hw_silu){ .x = y, .y = y }));
        assert_int_equal(calls(queue, HW_OP_SILU).compared, 1);
        assert_int_equal(calls(queue, HW_OP_ADD).fallbacks, 0);
    }
    world_close(&w);
}

/* Graphs are replayed node by node, so that their ops are compared. */
static void graphs_are_compared(void **state)
{
    struct world w;
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    (void)state;
    open_shadow(&w, "1/2", NULL);
    const struct sum sum = sum_on(w.on_near);
    ok(hw_queue_record(w.on_near));
    ok(hw_add(w.on_near, &sum.op));
    ok(hw_queue_end(w.on_near, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.built, 0);
    for (int i = 0; i < 6; i++)
        ok(hw_graph_launch(graph, w.on_near));
    assert_int_equal(calls(w.on_near, HW_OP_ADD).compared, 3);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).calls, 6);
    world_close(&w);
}

/* Without a comparison there is no cost. A queue of the CPU has none either. */
static void only_where_it_is_asked_for(void **state)
{
    struct world w;
    (void)state;
    open_shadow(&w, NULL, NULL);
    assert_ptr_equal(w.on_near->submit[HW_OP_ADD], submit_for(HW_OP_ADD, true));
    assert_ptr_equal(w.on_cpu->submit[HW_OP_ADD], submit_for(HW_OP_ADD, true));
    world_close(&w);
    open_shadow(&w, "off", NULL);
    assert_ptr_equal(w.on_near->submit[HW_OP_ADD], submit_for(HW_OP_ADD, true));
    world_close(&w);
    open_shadow(&w, "1/3", NULL);
    assert_ptr_not_equal(w.on_near->submit[HW_OP_ADD], submit_for(HW_OP_ADD, true));
    assert_ptr_equal(w.on_cpu->submit[HW_OP_ADD], submit_for(HW_OP_ADD, true));
    /* Invalid calls are still rejected, and empty calls still do nothing. */
    struct sum sum = sum_on(w.on_near);
    sum.op.y = sum.op.a;
    sum.op.y.dtype = 99;
    fails(HW_INVALID, "add: y", hw_add(w.on_near, &sum.op));
    fails(HW_INVALID, "is not an op", hw_submit(w.on_near, 999, &sum.op, sizeof sum.op));
    world_close(&w);
}

static void the_cpu_plugin_is_needed(void **state)
{
    static const char *const bad[] = { "1", "1/0", "1/1000001", "2/3", "1/2x", "on" };
    struct world w;
    (void)state;
    fails(HW_NO_DEVICE, "HW_SHADOW (option) compares results with",
          open_with(&w, "discrete", "1/10", NULL));
    /* It computes the ops that the others get wrong, so it comes last. */
    fails(HW_NO_DEVICE, "move cpu to the end of HW_BACKENDS",
          open_with(&w, "cpu,discrete", "1/10", NULL));
    fails(HW_NO_DEVICE, "discrete:1 is behind it",
          open_with(&w, "null,cpu,discrete", "1/10", NULL));
    ok(open_with(&w, "cpu,discrete", NULL, NULL));
    world_close(&w);
    ok(open_with(&w, "cpu", "1/10", NULL));
    world_close(&w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails(HW_INVALID, "HW_SHADOW; it must be off, or 1/N",
              open_with(&w, "discrete,cpu", bad[i], NULL));
    setenv("HW_SHADOW", "1/7", 1);
    fails(HW_NO_DEVICE, "HW_SHADOW compares results with",
          open_with(&w, "discrete", NULL, NULL));
    ok(open_with(&w, "discrete,cpu", NULL, NULL));
    assert_true(report_has(w.context, "\"variable\":\"HW_SHADOW\",\"value\":\"1/7\""));
    unsetenv("HW_SHADOW");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lying_op_is_withdrawn),
        cmocka_unit_test(in_place),
        cmocka_unit_test(hosts_and_views),
        cmocka_unit_test(without_a_fallback),
        cmocka_unit_test(a_sample_is_compared),
        cmocka_unit_test(graphs_are_compared),
        cmocka_unit_test(only_where_it_is_asked_for),
        cmocka_unit_test(the_cpu_plugin_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
