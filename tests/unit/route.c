/* SPDX-License-Identifier: MIT */
/* route.c - the cold path: staging of host tensors, views made contiguous, fallback to
 * another device; each right, counted, and never silent. */
#include "unit.h"

#include <math.h>

static float silu(float x)
{
    return x / (1.0f + expf(-x));
}

static void close_to(float a, float b)
{
    assert_true(fabsf(a - b) <= 1e-6f * (1.0f + fabsf(b)));
}

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(i % 17) * 0.25f - 2.0f;
}

/* ---- host tensors ---- */

static void host_tensors_are_staged(void **state)
{
    struct world w;
    float x[12], y[12];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, 12);
    struct hw_silu op = { .x = host_f32(x, (int64_t)3, (int64_t)4, END),
                          .y = host_f32(y, (int64_t)3, (int64_t)4, END) };
    ok(hw_silu(w.on_near, &op));
    ok(hw_queue_wait(w.on_near));
    for (int i = 0; i < 12; i++)
        close_to(y[i], silu(x[i]));
    const struct hw_call_stats s = calls(w.on_near, HW_OP_SILU);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.staged_bytes, 2 * sizeof x);
    assert_int_equal(s.fallbacks, 0);
    world_close(&w);
}

/* What one op has yet to write to the host, the next one reads; in place, and strided. */
static void staged_results_are_read_again(void **state)
{
    struct world w;
    float x[64], expected[64];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, 64);
    memcpy(expected, x, sizeof x);
    struct hw_tensor whole = host_f32(x, (int64_t)8, (int64_t)8, END), columns;
    ok(hw_tensor_slice(&columns, &whole, 1, 2, 5));
    for (int round = 0; round < 5; round++) {
        ok(hw_silu(w.on_near, &(struct hw_silu){ .x = columns, .y = columns }));
        for (int r = 0; r < 8; r++)
            for (int c = 2; c < 5; c++)
                expected[8 * r + c] = silu(expected[8 * r + c]);
    }
    ok(hw_queue_wait(w.on_near));
    for (int i = 0; i < 64; i++)
        close_to(x[i], expected[i]);
    world_close(&w);
}

/* More rows than are transferred one by one, so the host scatters them at the wait. */
static void many_rows_are_scattered(void **state)
{
    enum { ROWS = 100 };
    struct world w;
    static float x[ROWS * 4], y[ROWS * 4];
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, ROWS * 4);
    memset(y, 0, sizeof y);
    struct hw_tensor a = host_f32(x, (int64_t)ROWS, (int64_t)4, END),
                     b = host_f32(y, (int64_t)ROWS, (int64_t)4, END);
    ok(hw_tensor_slice(&a, &a, 1, 1, 3));
    ok(hw_tensor_slice(&b, &b, 1, 1, 3));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = b }));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = b, .y = b })); /* reads what is owed */
    ok(hw_queue_wait(w.on_near));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 4; c++)
            close_to(y[4 * r + c], c == 1 || c == 2 ? silu(silu(x[4 * r + c])) : 0.0f);
    world_close(&w);
}

/* Larger than what is gathered: transferred from where it lies. */
static void large_tensors_are_staged(void **state)
{
    enum { N = 1 << 19 };
    struct world w;
    float *x = malloc(2 * N * sizeof *x), *y = x + N;
    (void)state;
    world_open(&w, NULL, NULL);
    fill(x, N);
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = host_f32(x, (int64_t)N, END),
                                             .y = host_f32(y, (int64_t)N, END) }));
    ok(hw_queue_wait(w.on_near));
    for (int i = 0; i < N; i += 1001)
        close_to(y[i], silu(x[i]));
    world_close(&w);
    free(x);
}

static struct hw_tensor visible(struct hw_device *device, int64_t rows, int64_t cols,
                                float value)
{
    const int64_t extents[] = { rows, cols };
    struct hw_tensor t;
    ok(hw_tensor_alloc(device, HW_BUFFER_HOST_VISIBLE, HW_F32, 2, extents, &t));
    for (int64_t i = 0; i < rows * cols; i++)
        ((float *)hw_buffer_host(t.buffer))[i] = value;
    return t;
}

/* A buffer, and the host's address of it, are one memory: in few pieces and in many, ops on
 * both come one after the other. */
static void addresses_of_buffers_keep_the_order(void **state)
{
    enum { ROWS = 64 };
    const struct hw_arg ms = { .kind = HW_ARG_INT, .i = 50 };
    struct world w;
    float ones[ROWS];
    (void)state;
    world_open(&w, NULL, NULL);
    for (int i = 0; i < ROWS; i++)
        ones[i] = 1.0f;
    const struct hw_tensor x = visible(w.near, ROWS, 2, 1), b = visible(w.near, ROWS, 2, 0),
                           y = visible(w.near, ROWS, 2, 0),
                           one = hw_host_2d(ones, HW_F32, ROWS, 1);
    const struct hw_tensor at_b = hw_host_2d(hw_buffer_host(b.buffer), HW_F32, ROWS, 2);
    struct hw_tensor column;
    ok(hw_tensor_slice(&column, &at_b, 1, 0, 1));
    ok(hw_extension_call(w.on_near, "discrete.sleep", &ms, 1));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = x, .b = x, .y = b }));    /* b = 2 */
    ok(hw_add(w.on_near, &(struct hw_add){ .a = at_b, .b = x, .y = b })); /* b = 3 */
    ok(hw_add(w.on_near,
              &(struct hw_add){ .a = column, .b = one, .y = column })); /* b = 4 3 */
    ok(hw_add(w.on_near, &(struct hw_add){ .a = b, .b = x, .y = y }));  /* y = 5 4 */
    ok(hw_queue_wait(w.on_near));
    const float *got = hw_buffer_host(y.buffer);
    for (int r = 0; r < ROWS; r++)
        assert_true(got[2 * r] == 5.0f && got[2 * r + 1] == 4.0f);
    world_close(&w);
}

/* ---- views ---- */

static void views_are_made_contiguous(struct hw_queue *queue)
{
    float x[24], y[24], got[24];
    fill(x, 24);
    memset(y, 0, sizeof y);
    struct hw_tensor a = put(queue, x, 4, 6), b = put(queue, y, 6, 4), turned, part;
    ok(hw_tensor_transpose(&turned, &b, 0, 1));
    ok(hw_tensor_slice(&part, &turned, 1, 0, 6));
    const uint64_t before = calls(queue, HW_OP_SILU).copied_views;
    ok(hw_silu(queue, &(struct hw_silu){ .x = a, .y = part }));
    get(queue, &b, got);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 6; c++)
            close_to(got[4 * c + r], silu(x[6 * r + c]));
    assert_int_equal(calls(queue, HW_OP_SILU).copied_views, before + 1);
}

static void views_on_every_device(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    views_are_made_contiguous(w.on_near);
    views_are_made_contiguous(w.on_cpu);
    world_close(&w);
}

/* A row repeated over an axis stays one row in scratch. */
static void repeated_views(void **state)
{
    struct world w;
    float x[12] = { 1, 9, 2, 9, 3, 9, 4, 9 }, zero[12] = { 0 }, got[12];
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_tensor row = put(w.on_near, x, 1, 8);
    struct hw_tensor a = { .buffer = row.buffer,
                           .dtype = HW_F32,
                           .rank = 2,
                           .extent = { 3, 4 },
                           .stride = { 0, 8 } };
    struct hw_tensor b = put(w.on_near, zero, 3, 4), y = put(w.on_near, zero, 3, 4);
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = b, .y = y }));
    get(w.on_near, &y, got);
    for (int i = 0; i < 12; i++)
        close_to(got[i], (float)(i % 4 + 1));
    world_close(&w);
}

/* matmul has flags for transposed matrices: nothing is copied for them. */
static void transposed_matrices_are_not_copied(void **state)
{
    struct world w;
    float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 0, 2, 1, 0, 3 }, zero[4] = { 0 }, got[4];
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_tensor ta = put(w.on_near, a, 2, 3), tb = put(w.on_near, b, 2, 3),
                     c = put(w.on_near, zero, 2, 2), turned;
    ok(hw_tensor_transpose(&turned, &tb, 0, 1)); /* [3,2], as b wants it */
    ok(hw_matmul(w.on_near, &(struct hw_matmul){ .a = ta, .b = turned, .c = c }));
    get(w.on_near, &c, got);
    const float expected[4] = { 7, 10, 16, 22 };
    for (int i = 0; i < 4; i++)
        close_to(got[i], expected[i]);
    assert_int_equal(calls(w.on_near, HW_OP_MATMUL).copied_views, 0);
    world_close(&w);
}

/* What the plugin answers when it is asked about matmuls with a flag that `refused` has. */
static uint32_t refused;
static int32_t (*real_supports)(void *device, uint32_t op, const void *args, char *why,
                                size_t why_size, uint64_t *scratch);

static int32_t supports_fewer_flags(void *device, uint32_t op, const void *args, char *why,
                                    size_t why_size, uint64_t *scratch)
{
    const struct hw_matmul *matmul = args;
    if (op != HW_OP_MATMUL || !((matmul->transpose_a | matmul->transpose_b << 1) & refused))
        return real_supports(device, op, args, why, why_size, scratch);
    snprintf(why, why_size, "no transposes");
    return HW_UNSUPPORTED;
}

/* A flag that the plugin does not take is no way to say it: the view is copied then. */
static void views_are_said_as_the_plugin_takes_them(void **state)
{
    static const uint32_t refusals[] = { 0, 1, 2, 3 }, copies[] = { 0, 1, 1, 2 };
    static float at[6] = { 1, 4, 2, 5, 3, 6 }, bt[6] = { 1, 0, 2, 1, 0, 3 };
    const float expected[4] = { 7, 10, 16, 22 };
    struct world w;
    float got[4];
    (void)state;
    world_open(&w, "error", NULL);
    struct hw_matmul op = { .a = put(w.on_near, at, 3, 2), .b = put(w.on_near, bt, 2, 3) };
    ok(hw_tensor_transpose(&op.a, &op.a, 0, 1));
    ok(hw_tensor_transpose(&op.b, &op.b, 0, 1));
    real_supports = w.near->plugin->table.supports;
    w.near->plugin->table.supports = supports_fewer_flags;
    for (int i = 0; i < 4; i++) {
        refused = refusals[i];
        op.c = put(w.on_near, got, 2, 2);
        const uint64_t before = calls(w.on_near, HW_OP_MATMUL).copied_views;
        ok(hw_device_supports(w.near, HW_OP_MATMUL, &op, sizeof op));
        ok(hw_matmul(w.on_near, &op));
        get(w.on_near, &op.c, got);
        for (int k = 0; k < 4; k++)
            close_to(got[k], expected[k]);
        assert_int_equal(calls(w.on_near, HW_OP_MATMUL).copied_views, before + copies[i]);
    }
    world_close(&w);
}

/* ---- fallback ---- */

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
    /* Said once, with op, device and reason; and in the report. */
    assert_int_equal(w.log_lines, 1);
    assert_non_null(strstr(w.log, "mul"));
    assert_non_null(strstr(w.log, "discrete:0"));
    assert_non_null(strstr(w.log, "cpu:0"));
    assert_non_null(strstr(w.log, "by way of host memory")); /* where they may have been before */
    size_t length = hw_explain(w.context, NULL, 0);
    char *text = malloc(length + 1);
    hw_explain(w.context, text, length + 1);
    assert_non_null(strstr(text, "\"computed_by\":\"cpu:0\""));
    assert_non_null(strstr(text, "\"fallbacks\":3"));
    free(text);
    world_close(&w);
}

/* Only what the op writes changes: not the gaps of a view. */
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

static void fallback_may_be_forbidden(void **state)
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

/* A queue on the last device has nobody behind it, and never wakes those before it. */
static void nobody_is_left(void **state)
{
    struct world w;
    struct hw_tensor blocks, back;
    const int64_t extents[] = { 2, 256 };
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_tensor_alloc(w.cpu, 0, HW_Q4_K, 2, extents, &blocks));
    ok(hw_tensor_alloc(w.cpu, 0, HW_F32, 2, extents, &back));
    fails(HW_UNSUPPORTED, "no other device", hw_copy(w.on_cpu, &blocks, &back));
    world_close(&w);
}

/* ---- a driver that fails at submission ---- */

/* Answers what it is told to, after it has spoilt what it can reach of the output. */
static int32_t answer;
static uint32_t asked;

static int32_t broken(const struct hw_tensor *y)
{
    asked++;
    if (!y->buffer && y->data)
        memset(hw_tensor_address(y), 0xff, hw_tensor_bytes(y));
    return plugin_says(answer, "the driver says 700");
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
BROKEN(add_rmsnorm, y)

static void break_queue(struct hw_queue *queue, enum hw_status status)
{
    queue->ops.add = broken_add;
    queue->ops.silu = broken_silu;
    queue->ops.copy = broken_copy;
    queue->ops.add_rmsnorm = broken_add_rmsnorm;
    answer = (int32_t)status;
    asked = 0;
}

static void a_drivers_error_is_retried_elsewhere(void **state)
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
    /* Said, with the driver's words, and counted. */
    assert_int_equal(asked, 1);
    assert_int_equal(w.log_lines, 1);
    assert_non_null(strstr(w.log, "discrete:1"));
    assert_non_null(strstr(w.log, "the driver says 700"));
    struct hw_call_stats s = calls(w.on_near, HW_OP_ADD);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.fallbacks, 1);
    /* Staged from the host, and that in a graph. */
    struct hw_add staged = op;
    staged.a = host_f32(x, (int64_t)2, (int64_t)3, END);
    ok(hw_add(w.on_near, &staged));
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

/* The status, with op, device and the driver's words; nobody else was asked. */
#define not_retried(wanted, queue, op, call)                                               \
    do {                                                                                   \
        asked = 0;                                                                         \
        fails(wanted, hw_op_name(op), call);                                               \
        assert_non_null(strstr(hw_message(), "the driver says 700"));                      \
        assert_non_null(strstr(hw_message(), hw_device_name(hw_queue_device(queue))));     \
        assert_int_equal(asked, 1);                                                        \
        assert_int_equal(calls(queue, op).calls, 0);                                       \
    } while (0)

/* Sleeps, then passes the event: who has waited for all of the queue has seen it pass. */
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

/* Fails at the nth transfer from now on. */
static int transfers_left;
static int32_t (*real_transfer)(void *queue, const struct hw_transfer *transfer);

static int32_t transfer_for_a_while(void *queue, const struct hw_transfer *t)
{
    return transfers_left-- ? real_transfer(queue, t)
                            : plugin_says(HW_DRIVER, "the bus is on fire");
}

/* A call that failed has returned all host memory, whichever step it failed at: operands that
 * are large are read where they lie when their turn comes, long after the call. */
static void who_fails_returns_host_memory(void **state)
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
    ok(hw_tensor_slice(&part, &part, 1, 0, 2)); /* three planes of two rows: three transfers */
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
        fails(HW_DRIVER, "the bus is on fire", hw_copy(w.on_near, &in_part, &part));
        assert_int_equal(hw_event_query(passed), HW_OK);
        transfers_left = left;
        passed = doze(w.on_near);
        fails(HW_DRIVER, "the bus is on fire", hw_copy(w.on_near, &part, &in_part));
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

/* What a node before the one that failed has borrowed, too. */
static void a_launch_that_fails_returns_host_memory(void **state)
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

/* No device gets operands of an op that it lacks. */
static void nothing_is_moved_in_vain(void **state)
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
    return plugin_says(HW_UNSUPPORTED, "it could after all not");
}

/* It says that it can, takes the operands, and refuses: they stay until it has let go. */
static void a_stand_in_that_refuses_lets_go(void **state)
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
    return plugin_says(HW_NO_MEMORY, "the stand-in is full");
}

/* Another error of a stand-in is as good as a refusal, while it can not have written what the
 * op reads. */
static void a_stand_in_that_fails(void **state)
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

/* An output that is an input may be half written. */
static void what_is_in_place_is_not_retried(void **state)
{
    struct world w;
    float x[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_tensor a = put(w.on_near, x, 2, 3), b = put(w.on_near, x, 2, 3);
    break_queue(w.on_near, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_near, HW_OP_SILU,
                hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = a }));
    not_retried(HW_DRIVER, w.on_near, HW_OP_ADD,
                hw_add(w.on_near, &(struct hw_add){ .a = b, .b = a, .y = a }));
    not_retried(
        HW_DRIVER, w.on_near, HW_OP_ADD_RMSNORM,
        hw_add_rmsnorm(w.on_near, &(struct hw_add_rmsnorm){ .residual = a,
                                                            .x = b,
                                                            .y = put(w.on_near, x, 2, 3),
                                                            .eps = 1e-5f }));
    assert_int_equal(w.log_lines, 0);
    world_close(&w);
}

/* A device ahead of the CPU that reads host memory and builds no graphs. */
static struct hw_queue *open_broken_null(struct hw_context **context)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "null,cpu",
                                        .plugin_path_only = getenv("HW_TEST_PLUGINS"),
                                        .threads = "1",
                                        .log = "off" };
    struct hw_queue *queue;
    ok(hw_open(&options, context));
    ok(hw_queue_open(hw_device_default(*context), NULL, &queue));
    break_queue(queue, HW_DRIVER);
    return queue;
}

/* One place has many names: an address and an offset, a buffer and its address. */
static void in_place_by_another_name(void **state)
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
    ok(hw_buffer_alloc(hw_device_default(context), sizeof x, HW_BUFFER_HOST_VISIBLE,
                       &buffer));
    ok(hw_tensor_view(&whole, buffer, 0, HW_F32, 1, &eight));
    ok(hw_tensor_slice(&op.x, &whole, 0, 4, 8));
    op.y.data = (float *)hw_buffer_host(buffer) + 4;
    not_retried(HW_DRIVER, queue, HW_OP_SILU, hw_silu(queue, &op));
    /* Beside it is not in it. */
    op.x = host_f32(x, (int64_t)4, END);
    op.y = host_f32(y, (int64_t)4, END);
    ok(hw_silu(queue, &op));
    ok(hw_queue_wait(queue));
    close_to(y[3], silu(4.0f));
    hw_close(context);
}

/* A node that is replayed is an op like any other; a graph that the plugin built is not. */
static void graphs_are_retried_by_the_node(void **state)
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

static void nobody_stands_in_for_a_driver(void **state)
{
    struct world w;
    struct hw_tensor blocks;
    const int64_t extents[] = { 2, 256 };
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
    /* Behind the last device there is none. */
    op = (struct hw_add){ .a = put(w.on_cpu, x, 1, 4),
                          .b = put(w.on_cpu, x, 1, 4),
                          .y = put(w.on_cpu, x, 1, 4) };
    break_queue(w.on_cpu, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_cpu, HW_OP_ADD, hw_add(w.on_cpu, &op));
    assert_non_null(strstr(hw_message(), "no other device is left"));
    /* All others say that they can not: the driver's error is the answer, since the output may
     * have been touched. */
    ok(hw_tensor_alloc(w.near, 0, HW_Q4_K, 2, extents, &blocks));
    const struct hw_copy copy = { .src = device_f32(w.near, (int64_t)2, (int64_t)256, END),
                                  .dst = blocks };
    break_queue(w.on_near, HW_DRIVER);
    not_retried(HW_DRIVER, w.on_near, HW_OP_COPY,
                hw_submit(w.on_near, HW_OP_COPY, &copy, sizeof copy));
    assert_non_null(strstr(hw_message(), "no other device computes it either"));
    world_close(&w);
}

/* Less memory elsewhere helps nobody, and a device that is gone has the operands. */
static void other_errors_are_not_retried(void **state)
{
    struct world w;
    float x[4] = { 1, 2, 3, 4 };
    (void)state;
    world_open(&w, NULL, NULL);
    const struct hw_add op = { .a = put(w.on_near, x, 1, 4),
                               .b = put(w.on_near, x, 1, 4),
                               .y = put(w.on_near, x, 1, 4) };
    static const enum hw_status statuses[] = { HW_NO_MEMORY, HW_INTERNAL, HW_INVALID,
                                               HW_TIMEOUT, (enum hw_status)99 };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        break_queue(w.on_near, statuses[i]);
        not_retried(statuses[i], w.on_near, HW_OP_ADD, hw_add(w.on_near, &op));
    }
    assert_int_equal(w.log_lines, 0);
    break_queue(w.on_near, HW_LOST);
    not_retried(HW_LOST, w.on_near, HW_OP_ADD, hw_add(w.on_near, &op));
    fails(HW_LOST, "discrete:0 is lost", hw_add(w.on_near, &op));
    assert_int_equal(asked, 1);
    assert_int_equal(w.log_lines, 1);
    world_close(&w);
}

/* ---- what is wrong ---- */

static void buffers_of_another_device(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_silu op = { .x = device_f32(w.near, (int64_t)4, END),
                          .y = device_f32(w.far, (int64_t)4, END) };
    fails(HW_INVALID, "hw_copy", hw_silu(w.on_near, &op));
    assert_non_null(strstr(hw_message(), "discrete:1"));
    assert_non_null(strstr(hw_message(), "discrete:0"));
    assert_non_null(strstr(hw_message(), "y"));
    world_close(&w);
}

static void supports_says_what_submit_would(void **state)
{
    struct world w;
    float x[6] = { 0 };
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_mul op = multiply(w.on_near, x, x);
    struct hw_silu good = { .x = op.a, .y = op.y };
    fails(HW_UNSUPPORTED, "mul", hw_device_supports(w.near, HW_OP_MUL, &op, sizeof op));
    ok(hw_device_supports(w.near, HW_OP_SILU, &good, sizeof good));
    good.y.extent[1] = 2;
    fails(HW_INVALID, "y", hw_device_supports(w.near, HW_OP_SILU, &good, sizeof good));
    /* Nothing to compute: an answer about the op all the same. */
    op.a.extent[0] = op.b.extent[0] = op.y.extent[0] = 0;
    fails(HW_UNSUPPORTED, "has no mul",
          hw_device_supports(w.near, HW_OP_MUL, &op, sizeof op));
    good.x.extent[0] = good.y.extent[0] = 0;
    good.y.extent[1] = good.x.extent[1];
    ok(hw_device_supports(w.near, HW_OP_SILU, &good, sizeof good));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_tensors_are_staged),
        cmocka_unit_test(staged_results_are_read_again),
        cmocka_unit_test(many_rows_are_scattered),
        cmocka_unit_test(large_tensors_are_staged),
        cmocka_unit_test(addresses_of_buffers_keep_the_order),
        cmocka_unit_test(views_on_every_device),
        cmocka_unit_test(repeated_views),
        cmocka_unit_test(transposed_matrices_are_not_copied),
        cmocka_unit_test(views_are_said_as_the_plugin_takes_them),
        cmocka_unit_test(another_device_computes),
        cmocka_unit_test(fallback_keeps_gaps),
        cmocka_unit_test(fallback_may_be_forbidden),
        cmocka_unit_test(nobody_is_left),
        cmocka_unit_test(a_drivers_error_is_retried_elsewhere),
        cmocka_unit_test(nothing_is_moved_in_vain),
        cmocka_unit_test(who_fails_returns_host_memory),
        cmocka_unit_test(a_launch_that_fails_returns_host_memory),
        cmocka_unit_test(a_stand_in_that_refuses_lets_go),
        cmocka_unit_test(a_stand_in_that_fails),
        cmocka_unit_test(what_is_in_place_is_not_retried),
        cmocka_unit_test(in_place_by_another_name),
        cmocka_unit_test(graphs_are_retried_by_the_node),
        cmocka_unit_test(nobody_stands_in_for_a_driver),
        cmocka_unit_test(other_errors_are_not_retried),
        cmocka_unit_test(buffers_of_another_device),
        cmocka_unit_test(supports_says_what_submit_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
