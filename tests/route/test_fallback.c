/* SPDX-License-Identifier: MIT */
/* test_fallback.c - an op that the first device cannot compute, or whose driver call
 * failed, is computed by another device: correctly, counted and logged. Also the ops
 * that must not be computed a second time. */
#include "call/queue.h"
#include "world.h"

/* ---- fallback to another device ---- */

static struct hw_mul multiply(struct hw_queue *queue, float *x, float *y)
{
    return (struct hw_mul){ .a = put(queue, x, 2, 3),
                            .b = put(queue, x, 2, 3),
                            .y = put(queue, y, 2, 3) };
}

static void another_device_computes(void **state)
{
    struct world w;
    float x[6], y[6] = { 0 }, got[6];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, 6);
    struct hw_mul op = multiply(w.on_near, x, y);
    for (int i = 0; i < 3; i++)
        ok(hw_mul(w.on_near, &op));
    get(w.on_near, &op.y, got);
    for (int i = 0; i < 6; i++)
        close_to(got[i], x[i] * x[i]);
    const struct hw_call_stats s = calls(w.on_near, HW_OP_MUL);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.fallbacks, 3);
    assert_int_equal(s.fallback_bytes, 3 * 3 * sizeof x);
    /* The fallback is logged once, with op, device and reason, and is in the report. */
    assert_int_equal(w.log_lines, 1);
    assert_non_null(strstr(w.log, "mul"));
    assert_non_null(strstr(w.log, "discrete:0"));
    assert_non_null(strstr(w.log, "cpu:0"));
    assert_non_null(
        strstr(w.log, "through host memory")); /* where the operands may have been before */
    assert_true(report_has(w.context, "\"computed_by\":\"cpu:0\""));
    assert_true(report_has(w.context, "\"fallbacks\":3"));
    world_close(&w);
}

/* Only the elements that the op writes change, not the gaps of a view. */
static void fallback_keeps_gaps(void **state)
{
    struct world w;
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6] = { -1, -1, -1, -1, -1, -1 }, got[6];
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_mul op = multiply(w.on_near, x, y);
    struct hw_tensor whole = op.y;
    ok(hw_tensor_slice(&op.a, &op.a, 1, 0, 2));
    ok(hw_tensor_slice(&op.b, &op.b, 1, 1, 3));
    ok(hw_tensor_slice(&op.y, &op.y, 1, 1, 3));
    ok(hw_mul(w.on_near, &op));
    get(w.on_near, &whole, got);
    const float expected[6] = { -1, 2, 6, -1, 20, 30 };
    for (int i = 0; i < 6; i++)
        close_to(got[i], expected[i]);
    world_close(&w);
}

static void fallback_can_be_disabled(void **state)
{
    struct world w;
    float x[6] = { 0 }, y[6] = { 7, 7, 7, 7, 7, 7 }, got[6];
    (void)state;
    world_open(&w, "error", NULL);
    struct hw_mul op = multiply(w.on_near, x, y);
    fails(HW_UNSUPPORTED, "HW_FALLBACK=error", hw_mul(w.on_near, &op));
    assert_non_null(strstr(hw_message(), "mul"));
    assert_non_null(strstr(hw_message(), "f32"));
    assert_non_null(strstr(hw_message(), "discrete:0"));
    get(w.on_near, &op.y, got);
    for (int i = 0; i < 6; i++)
        close_to(got[i], 7.0f);
    assert_int_equal(calls(w.on_near, HW_OP_MUL).calls, 0);
    world_close(&w);
}

/* A queue on the last device has no fallback, and does not start the devices before it. */
static void last_device_has_no_fallback(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    const struct hw_tensor row = device_f32(w.cpu, (int64_t)4, END);
    fails(HW_UNSUPPORTED, "no other device", rope_slowly(w.on_cpu, &row));
    world_close(&w);
}

/* ---- driver errors at submission ---- */

/* Overwrites part of the output, then returns `answer`. */
static int32_t answer;
static uint32_t asked;

static int32_t broken(const struct hw_tensor *y)
{
    asked++;
    if (!y->buffer && y->data)
        memset(hw_tensor_address(y), 0xff, hw_tensor_bytes(y));
    return plugin_message_set(answer, "the driver says 700");
}

#define BROKEN(name, output)                                                               \
    static int32_t broken_##name(void *device, void *queue, const struct hw_##name *op)    \
    {                                                                                      \
        (void)device, (void)queue;                                                         \
        return broken(&op->output);                                                        \
    }
BROKEN(add, y)
BROKEN(silu, y)
BROKEN(copy, dst)
BROKEN(rope, y)
BROKEN(add_rmsnorm, y)

static void break_queue(struct hw_queue *queue, enum hw_status status)
{
    without_plans(queue->device);
    queue->ops.add = broken_add;
    queue->ops.silu = broken_silu;
    queue->ops.copy = broken_copy;
    queue->ops.rope = broken_rope;
    queue->ops.add_rmsnorm = broken_add_rmsnorm;
    answer = (int32_t)status;
    asked = 0;
}

static void driver_errors_are_retried_on_another_device(void **state)
{
    struct world w;
    struct hw_graph *graph;
    float x[6], zero[6] = { 0 }, got[6];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, 6);
    struct hw_tensor a = put(w.on_near, x, 2, 3), y = put(w.on_near, zero, 2, 3);
    const struct hw_add op = { .a = a, .b = a, .y = y };
    break_queue(w.on_near, HW_DRIVER);
    ok(hw_add(w.on_near, &op));
    get(w.on_near, &y, got);
    for (int i = 0; i < 6; i++)
        close_to(got[i], 2.0f * x[i]);
    /* The fallback is logged with the driver's message, and counted. */
    assert_int_equal(asked, 1);
    assert_int_equal(w.log_lines, 2);
    assert_non_null(strstr(w.log, "add (f32 f32 f32) is not tried again on discrete:0"));
    assert_non_null(strstr(w.log, "the driver says 700"));
    struct hw_call_stats s = calls(w.on_near, HW_OP_ADD);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.fallbacks, 1);
    assert_int_equal(s.failed, 1);
    /* The same with staged host tensors, and in a graph. */
    struct hw_add staged = op;
    staged.a = host_f32(x, (int64_t)2, (int64_t)3, END);
    ok(hw_device_reset(w.near));
    ok(hw_add(w.on_near, &staged));
    ok(hw_device_reset(w.near));
    ok(hw_queue_record(w.on_near));
    ok(hw_add(w.on_near, &staged));
    ok(hw_queue_end(w.on_near, &graph));
    ok(hw_graph_launch(graph, w.on_near));
    ok(hw_queue_wait(w.on_near));
    s = calls(w.on_near, HW_OP_ADD);
    assert_int_equal(asked, 3);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.fallbacks, 3);
    world_close(&w);
}

/* The call returns the status with op, device and the driver's message. No other device is
 * tried. */
#define not_retried(wanted, queue, op, call)                                               \
    do {                                                                                   \
        asked = 0;                                                                         \
        fails(wanted, hw_op_name(op), call);                                               \
        assert_non_null(strstr(hw_message(), "the driver says 700"));                      \
        assert_non_null(strstr(hw_message(), hw_device_name(hw_queue_device(queue))));     \
        assert_int_equal(asked, 1);                                                        \
        assert_int_equal(calls(queue, op).calls, 0);                                       \
    } while (0)

/* Queues a sleep, then an event. The event has passed only if the whole queue was waited
 * for. */
static struct hw_event *doze(struct hw_queue *queue)
{
    const struct hw_arg ms = { .kind = HW_ARG_INT, .i = 50 };
    struct hw_event *event;
    ok(hw_event_create(hw_queue_device(queue), 0, &event));
    ok(hw_extension_call(queue, "discrete.sleep", &ms, 1));
    ok(hw_event_record(event, queue));
    return event;
}

static int32_t broken_launch(void *queue, void *graph)
{
    (void)queue, (void)graph;
    return broken(&(struct hw_tensor){ .rank = 0 });
}

/* The nth transfer from now on fails. */
static int transfers_left;
static int32_t (*real_transfer)(void *queue, const struct hw_transfer *transfer);

static int32_t transfer_for_a_while(void *queue, const struct hw_transfer *t)
{
    return transfers_left-- ? real_transfer(queue, t)
                            : plugin_message_set(HW_DRIVER, "the bus is on fire");
}

/* A failed call no longer uses host memory when it returns, whichever step failed. Large
 * operands are read in place when their turn comes, which may be long after the call. */
static void failed_calls_release_host_memory(void **state)
{
    enum { N = 1 << 19, M = N / 3 };
    struct world w;
    float *x = calloc(3 * N, sizeof *x);
    struct hw_tensor part = host_f32(x, (int64_t)3, (int64_t)3, (int64_t)M, END);
    (void)state;
    world_open(&w, "error", NULL);
    const struct hw_add op = { .a = host_f32(x, (int64_t)N, END),
                               .b = host_f32(x + N, (int64_t)N, END),
                               .y = host_f32(x + 2 * N, (int64_t)N, END) };
    const struct hw_tensor in_part = device_f32(w.near, (int64_t)3, (int64_t)2,
                                                (int64_t)M - 1, END);
    ok(hw_tensor_slice(&part, &part, 1, 0,
                       2)); /* three planes of two rows: three transfers */
    ok(hw_tensor_slice(&part, &part, 2, 0, M - 1));
    real_transfer = w.near->plugin->table.transfer;
    w.near->plugin->table.transfer = transfer_for_a_while;
    for (transfers_left = 1; transfers_left <= 2; transfers_left++) { /* b; y */
        const int left = transfers_left;
        struct hw_event *passed = doze(w.on_near);
        fails(HW_DRIVER, "the bus is on fire", hw_add(w.on_near, &op));
        assert_int_equal(hw_event_query(passed), HW_OK);
        transfers_left = left;
        passed = doze(w.on_near);
        fails(HW_DRIVER, "the bus is on fire", copy_between(w.on_near, &in_part, &part));
        assert_int_equal(hw_event_query(passed), HW_OK);
        transfers_left = left;
        passed = doze(w.on_near);
        fails(HW_DRIVER, "the bus is on fire", copy_between(w.on_near, &part, &in_part));
        assert_int_equal(hw_event_query(passed), HW_OK);
        transfers_left = left;
    }
    transfers_left = -1;
    static const enum hw_status statuses[] = { HW_UNSUPPORTED, HW_DRIVER, HW_NO_MEMORY };
    for (int i = 0; i < 3; i++) {
        break_queue(w.on_near, statuses[i]);
        struct hw_event *passed = doze(w.on_near);
        not_retried(statuses[i], w.on_near, HW_OP_ADD, hw_add(w.on_near, &op));
        assert_int_equal(hw_event_query(passed), HW_OK);
    }
    world_close(&w);
    free(x);
}

/* The same holds for host memory that an earlier node of the graph uses. */
static void failed_launches_release_host_memory(void **state)
{
    enum { N = 1 << 19 };
    struct world w;
    struct hw_graph *graph;
    float *x = calloc(N, sizeof *x);
    (void)state;
    world_open(&w, NULL, NULL);
    const struct hw_tensor a = host_f32(x, (int64_t)N, END),
                           b = device_f32(w.near, (int64_t)N, END);
    ok(hw_queue_record(w.on_near));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = b, .y = b }));
    ok(hw_queue_end(w.on_near, &graph));
    w.near->plugin->table.graph_launch = broken_launch;
    answer = HW_DRIVER;
    struct hw_event *passed = doze(w.on_near);
    fails(HW_DRIVER, "the driver says 700", hw_graph_launch(graph, w.on_near));
    assert_int_equal(hw_event_query(passed), HW_OK);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).calls, 1);
    world_close(&w);
    free(x);
}

/* Operands are not moved to a device that lacks the op. */
static void operands_are_moved_only_if_supported(void **state)
{
    struct world w;
    struct hw_queue *helper;
    float x[6], y[6];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, 6);
    const struct hw_tensor a = host_f32(x, (int64_t)2, (int64_t)3, END);
    ok(hw_mul(
        w.on_near,
        &(struct hw_mul){ .a = a, .b = a, .y = host_f32(y, (int64_t)2, (int64_t)3, END) }));
    ok(hw_queue_wait(w.on_near));
    for (int i = 0; i < 6; i++)
        close_to(y[i], x[i] * x[i]);
    ok(queue_helper(w.on_near, w.far, &helper));
    assert_int_equal(calls(w.on_near, HW_OP_MUL).fallbacks, 1);
    assert_int_equal(calls(w.on_near, HW_OP_MUL).staged_bytes, 0);
    assert_int_equal(calls(helper, HW_OP_MUL).staged_bytes, 0);
    world_close(&w);
}

static struct hw_queue *refusing;
static struct hw_event *let_go;

static int32_t late_add(void *device, void *queue, const struct hw_add *op)
{
    (void)device, (void)queue, (void)op;
    let_go = doze(refusing);
    return plugin_message_set(HW_UNSUPPORTED, "it could after all not");
}

/* The fallback device reports support, receives the operands, and rejects the op. The call
 * waits until that device no longer uses them. */
static void fallback_that_rejects_is_waited_for(void **state)
{
    enum { N = 1 << 19 };
    struct world w;
    float *x = malloc(2 * N * sizeof *x), *y = x + N;
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, N);
    const struct hw_tensor a = put(w.on_near, x, 1, N);
    ok(queue_helper(w.on_near, w.far, &refusing));
    refusing->ops.add = late_add;
    break_queue(w.on_near, HW_UNSUPPORTED);
    ok(hw_add(
        w.on_near,
        &(struct hw_add){ .a = a, .b = a, .y = host_f32(y, (int64_t)1, (int64_t)N, END) }));
    ok(hw_event_query(let_go));
    assert_int_equal(calls(refusing, HW_OP_ADD).staged_bytes, 2 * N * sizeof *x);
    for (int i = 0; i < N; i += 1001)
        close_to(y[i], 2.0f * x[i]);
    assert_non_null(strstr(w.log, "runs on cpu:0"));
    world_close(&w);
    free(x);
}

static int32_t full_silu(void *device, void *queue, const struct hw_silu *op)
{
    (void)device, (void)queue, (void)op;
    asked++;
    return plugin_message_set(HW_NO_MEMORY, "the stand-in is full");
}

/* If the second device fails as well, the next one is tried, as long as the failed one cannot
 * have written an input of the op. */
static void fallback_that_fails(void **state)
{
    struct world w;
    struct hw_queue *helper;
    float x[6], y[6];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, 6);
    const struct hw_tensor a = host_f32(x, (int64_t)6, END),
                           b = host_f32(y, (int64_t)6, END);
    ok(queue_helper(w.on_near, w.far, &helper));
    helper->ops.silu = full_silu;
    break_queue(w.on_near, HW_UNSUPPORTED);
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = b }));
    assert_int_equal(asked, 2);
    for (int i = 0; i < 6; i++)
        close_to(y[i], silu(x[i]));
    fails(HW_NO_MEMORY, "the stand-in is full",
          hw_silu(w.on_near, &(struct hw_silu){ .x = b, .y = b }));
    assert_int_equal(asked, 4);
    for (int i = 0; i < 6; i++)
        close_to(y[i], silu(x[i]));
    assert_int_equal(calls(w.on_near, HW_OP_SILU).calls, 1);
    world_close(&w);
}

/* An output that is also an input may be half written. */
static void in_place_ops_are_not_retried(void **state)
{
    struct world w;
    float x[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_tensor a = put(w.on_near, x, 2, 3), b = put(w.on_near, x, 2, 3);
    break_queue(w.on_near, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_near, HW_OP_SILU,
                hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = a }));
    assert_non_null(strstr(hw_message(), "from now on discrete:1 computes this op"));
    not_retried(HW_DRIVER, w.on_near, HW_OP_ADD,
                hw_add(w.on_near, &(struct hw_add){ .a = b, .b = a, .y = a }));
    not_retried(
        HW_DRIVER, w.on_near, HW_OP_ADD_RMSNORM,
        hw_add_rmsnorm(w.on_near, &(struct hw_add_rmsnorm){ .residual = a,
                                                            .x = b,
                                                            .y = put(w.on_near, x, 2, 3),
                                                            .eps = 1e-5f }));
    assert_int_equal(w.log_lines, 3);
    world_close(&w);
}

/* A device ahead of the CPU that reads host memory and builds no graphs. */
static struct hw_queue *open_broken_null(struct hw_context **context)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "null,cpu",
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .threads = "1",
                                        .log = "off" };
    struct hw_queue *queue;
    ok(hw_open(&options, context));
    ok(hw_queue_open(hw_device_default(*context), NULL, &queue));
    break_queue(queue, HW_DRIVER);
    return queue;
}

/* The same address in different representations: an address and an offset, or a buffer and its host
 * address. */
static void aliased_in_place_ops_are_not_retried(void **state)
{
    struct hw_context *context;
    struct hw_buffer *buffer;
    struct hw_tensor whole;
    const int64_t eight = 8;
    float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[4];
    (void)state;
    struct hw_queue *queue = open_broken_null(&context);
    const struct hw_tensor at = host_f32(x + 4, (int64_t)4, END);
    struct hw_silu op = { .x = at, .y = at };
    op.x.data = x;
    op.x.offset = 4 * sizeof *x;
    not_retried(HW_DRIVER, queue, HW_OP_SILU, hw_silu(queue, &op));
    ok(hw_device_reset(hw_queue_device(queue)));
    ok(hw_buffer_alloc(hw_device_default(context), sizeof x, HW_BUFFER_HOST_VISIBLE,
                       &buffer));
    ok(hw_tensor_view(&whole, buffer, 0, HW_F32, 1, &eight));
    ok(hw_tensor_slice(&op.x, &whole, 0, 4, 8));
    op.y.data = (float *)hw_buffer_host(buffer) + 4;
    not_retried(HW_DRIVER, queue, HW_OP_SILU, hw_silu(queue, &op));
    /* Memory next to the operand is not in place. */
    op.x = host_f32(x, (int64_t)4, END);
    op.y = host_f32(y, (int64_t)4, END);
    ok(hw_device_reset(hw_queue_device(queue)));
    ok(hw_silu(queue, &op));
    ok(hw_queue_wait(queue));
    close_to(y[3], silu(4.0f));
    hw_close(context);
}

/* A replayed node can fall back like any other op. A graph that the plugin built cannot. */
static void only_replayed_nodes_are_retried(void **state)
{
    struct world w;
    struct hw_context *context;
    struct hw_graph *graph;
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    (void)state;
    struct hw_queue *queue = open_broken_null(&context);
    ok(hw_queue_record(queue));
    ok(hw_silu(queue, &(struct hw_silu){ .x = host_f32(x, (int64_t)4, END),
                                         .y = host_f32(y, (int64_t)4, END) }));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_launch(graph, queue));
    ok(hw_queue_wait(queue));
    close_to(y[3], silu(4.0f));
    assert_int_equal(calls(queue, HW_OP_SILU).fallbacks, 1);
    hw_close(context);

    world_open(&w, NULL, NULL);
    struct hw_tensor a = put(w.on_near, x, 1, 4), b = put(w.on_near, y, 1, 4);
    ok(hw_queue_record(w.on_near));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = b }));
    ok(hw_queue_end(w.on_near, &graph));
    w.near->plugin->table.graph_launch = broken_launch;
    answer = HW_DRIVER;
    fails(HW_DRIVER, "launch a graph on discrete:0: the driver says 700",
          hw_graph_launch(graph, w.on_near));
    assert_int_equal(calls(w.on_near, HW_OP_SILU).calls, 0);
    world_close(&w);
}

static void driver_errors_without_a_fallback(void **state)
{
    struct world w;
    float x[4] = { 1, 2, 3, 4 };
    (void)state;
    world_open(&w, "error", NULL);
    struct hw_add op = { .a = put(w.on_near, x, 1, 4),
                         .b = put(w.on_near, x, 1, 4),
                         .y = put(w.on_near, x, 1, 4) };
    break_queue(w.on_near, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_near, HW_OP_ADD, hw_add(w.on_near, &op));
    assert_non_null(strstr(hw_message(), "HW_FALLBACK=error"));
    world_close(&w);
    world_open(&w, NULL, NULL);
    /* The last device has no fallback. */
    op = (struct hw_add){ .a = put(w.on_cpu, x, 1, 4),
                          .b = put(w.on_cpu, x, 1, 4),
                          .y = put(w.on_cpu, x, 1, 4) };
    break_queue(w.on_cpu, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_cpu, HW_OP_ADD, hw_add(w.on_cpu, &op));
    assert_non_null(strstr(hw_message(), "no other device is left"));
    /* All other devices reject the op. The call returns the driver's error, since the
     * output may have been changed. */
    const struct hw_tensor row = put(w.on_near, x, 1, 4);
    break_queue(w.on_near, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_near, HW_OP_ROPE, rope_slowly(w.on_near, &row));
    assert_non_null(strstr(hw_message(), "no other device computes it"));
    world_close(&w);
}

/* Another device may not have more memory, and the operands are on the lost device. */
static void other_errors_are_not_retried(void **state)
{
    struct world w;
    float x[4] = { 1, 2, 3, 4 };
    (void)state;
    world_open(&w, NULL, NULL);
    const struct hw_add op = { .a = put(w.on_near, x, 1, 4),
                               .b = put(w.on_near, x, 1, 4),
                               .y = put(w.on_near, x, 1, 4) };
    static const enum hw_status statuses[] = { HW_NO_MEMORY, HW_NOT_READY, HW_INVALID,
                                               HW_TIMEOUT, (enum hw_status)99 };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        break_queue(w.on_near, statuses[i]);
        not_retried(statuses[i], w.on_near, HW_OP_ADD, hw_add(w.on_near, &op));
    }
    assert_int_equal(w.log_lines, 0);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).failed, 0);
    break_queue(w.on_near, HW_LOST);
    not_retried(HW_LOST, w.on_near, HW_OP_ADD, hw_add(w.on_near, &op));
    fails(HW_LOST, "discrete:0 is lost", hw_add(w.on_near, &op));
    assert_int_equal(asked, 1);
    assert_int_equal(w.log_lines, 1);
    world_close(&w);
}

/* ---- messages ---- */

static int32_t no_event(void *device, uint32_t flags, void **event)
{
    (void)device, (void)flags, (void)event;
    return plugin_message_set(HW_UNSUPPORTED, "no events here");
}

static int32_t no_graph(void *queue, const struct hw_node *nodes, uint32_t count,
                        void **graph)
{
    (void)queue, (void)nodes, (void)count, (void)graph;
    return plugin_message_set(HW_UNSUPPORTED, "no graphs here");
}

static int32_t mute_add(void *device, void *queue, const struct hw_add *op)
{
    (void)device, (void)queue, (void)op;
    return HW_TIMEOUT;
}

static int32_t mute_extension(void *device, uint32_t index, struct hw_extension *extension)
{
    (void)device, (void)index, (void)extension;
    return HW_INTERNAL;
}

/* A message set by a plugin call that did not fail the caller is not reported for a later
 * failure without a message. */
static void messages_belong_to_one_call(void **state)
{
    struct world w;
    struct hw_graph *graph;
    float x[4] = { 1, 2, 3, 4 };
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_plugin *table = &w.near->plugin->table;
    const struct hw_tensor a = put(w.on_near, x, 1, 4), y = put(w.on_near, x, 1, 4);
    const struct hw_add op = { .a = a, .b = a, .y = y };
    table->event_create = no_event;
    table->graph_build = no_graph;
    for (int i = 0; i < 2; i++) {
        struct hw_tensor t = put(w.on_near, x, 1, 4);
        if (i == 0) {
            ok(hw_queue_record(w.on_near));
            ok(hw_add(w.on_near, &op));
            ok(hw_queue_end(w.on_near, &graph));
        }
        int32_t (*theirs)(void *, void *, const struct hw_add *) = w.on_near->ops.add;
        w.on_near->ops.add = mute_add;
        if (i == 1)
            hw_buffer_free_after(t.buffer, w.on_near);
        fails(HW_TIMEOUT, "returned HW_TIMEOUT without a message", hw_add(w.on_near, &op));
        w.on_near->ops.add = theirs;
    }
    plugin_message_set(HW_OK, "said, and succeeded");
    table->extension = mute_extension;
    fails(HW_INTERNAL,
          "extension ops of discrete:0: the plugin returned HW_INTERNAL without a message",
          hw_extension_call(w.on_near, "discrete.sleep", NULL, 0));
    world_close(&w);
}

static int32_t silent_silu(void *device, void *queue, const struct hw_silu *op)
{
    (void)device, (void)queue, (void)op;
    return HW_DRIVER;
}

/* If the plugin sets no message, the message contains its status. */
static void driver_without_a_message(void **state)
{
    struct world w;
    float x[2] = { 1, 2 };
    (void)state;
    world_open(&w, "error", NULL);
    const struct hw_tensor t = put(w.on_near, x, 1, 2);
    w.on_near->ops.silu = silent_silu;
    fails(HW_DRIVER, "returned HW_DRIVER",
          hw_silu(w.on_near, &(struct hw_silu){ .x = t, .y = t }));
    const struct hw_tensor y = put(w.on_near, x, 1, 2);
    fails(HW_DRIVER, "returned HW_DRIVER",
          hw_silu(w.on_near, &(struct hw_silu){ .x = t, .y = y }));
    world_close(&w);
}

static int32_t no_queue(void *device, const struct hw_queue_desc *desc, void **queue)
{
    (void)device, (void)desc, (void)queue;
    return HW_DRIVER;
}

/* The only possible fallback device cannot be opened: the message says why. */
static void fallback_that_cannot_be_opened(void **state)
{
    float x[2] = { 1, 2 };
    struct hw_context *context;
    struct hw_device *device, *cpu;
    struct hw_queue *queue;
    struct hw_options options = { .size = sizeof options,
                                  .backends = "discrete:0,cpu",
                                  .fallback = "allow",
                                  .plugin_path = getenv("HW_TEST_PLUGINS") };
    (void)state;
    ok(hw_open(&options, &context));
    ok(hw_device_find(context, "discrete:0", &device));
    fails(HW_INVALID, "kernel \",,,,\" must be a list",
          hw_queue_open(device, &(struct hw_queue_options){ .size = 16, .kernel = ",,,," },
                        &queue));
    ok(hw_queue_open(device, &(struct hw_queue_options){ .size = 16, .kernel = "portable" },
                     &queue));
    const struct hw_tensor t = host_f32(x, (int64_t)2, END);
    queue->ops.silu = broken_silu;
    answer = HW_UNSUPPORTED;
    ok(hw_device_find(context, "cpu:0", &cpu));
    cpu->plugin->table.queue_open = no_queue;
    fails(HW_UNSUPPORTED, "open a queue on cpu:0: the plugin returned HW_DRIVER",
          hw_silu(queue, &(struct hw_silu){ .x = t, .y = t }));
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_device_computes),
        cmocka_unit_test(fallback_keeps_gaps),
        cmocka_unit_test(fallback_can_be_disabled),
        cmocka_unit_test(last_device_has_no_fallback),
        cmocka_unit_test(driver_errors_are_retried_on_another_device),
        cmocka_unit_test(operands_are_moved_only_if_supported),
        cmocka_unit_test(failed_calls_release_host_memory),
        cmocka_unit_test(failed_launches_release_host_memory),
        cmocka_unit_test(fallback_that_rejects_is_waited_for),
        cmocka_unit_test(fallback_that_fails),
        cmocka_unit_test(in_place_ops_are_not_retried),
        cmocka_unit_test(aliased_in_place_ops_are_not_retried),
        cmocka_unit_test(only_replayed_nodes_are_retried),
        cmocka_unit_test(driver_errors_without_a_fallback),
        cmocka_unit_test(other_errors_are_not_retried),
        cmocka_unit_test(driver_without_a_message),
        cmocka_unit_test(fallback_that_cannot_be_opened),
        cmocka_unit_test(messages_belong_to_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
