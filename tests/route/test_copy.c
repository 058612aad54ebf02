/* SPDX-License-Identifier: MIT */
/* test_copy.c - hw_copy() between any two of: the host, the CPU's memory, and two
 * devices of a plugin that cannot copy between them; with strides, conversion and
 * slices. */
#include "call/queue.h"
#include "world.h"

static struct world w;

static int open_world(void **state)
{
    (void)state;
    world_open(&w, NULL, NULL);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&w);
    return 0;
}

/* Allocates memory in each of the four places. */
static struct hw_tensor place(int where, int32_t dtype, int64_t rows, int64_t cols,
                              void *host)
{
    struct hw_device *const devices[] = { NULL, w.cpu, w.near, w.far };
    const int64_t extents[] = { rows, cols };
    struct hw_tensor t;
    if (where == 0)
        ok(hw_tensor_host(&t, host, dtype, 2, extents));
    else
        ok(hw_tensor_alloc(devices[where], 0, dtype, 2, extents, &t));
    return t;
}

static struct hw_pool_stats pool(struct hw_device *device)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    ok(hw_pool_stats(device, &stats));
    return stats;
}

static void copies_between_all_places(void **state)
{
    struct hw_queue *const queues[] = { w.on_cpu, w.on_near, w.on_far };
    float x[35], from_host[35], to_host[35], back[35];
    (void)state;
    for (int i = 0; i < 35; i++)
        x[i] = (float)i * 0.5f - 3.0f;
    const struct hw_tensor source = host_f32(x, (int64_t)5, (int64_t)7, END);
    const struct hw_tensor result = host_f32(back, (int64_t)5, (int64_t)7, END);
    for (int q = 0; q < 3; q++)
        for (int from = 0; from < 4; from++)
            for (int to = 0; to < 4; to++) {
                struct hw_tensor a = place(from, HW_F32, 5, 7, from_host);
                struct hw_tensor b = place(to, HW_F32, 5, 7, to_host);
                memset(back, 0, sizeof back);
                ok(copy_between(queues[q], &a, &source));
                ok(copy_between(queues[q], &b, &a));
                ok(copy_between(queues[q], &result, &b));
                ok(hw_queue_wait(queues[q]));
                assert_memory_equal(back, x, sizeof x);
                hw_buffer_free(a.buffer);
                hw_buffer_free(b.buffer);
            }
}

/* NaN payloads survive: a copy without conversion does no arithmetic. */
static void copies_are_exact(void **state)
{
    const uint32_t bits[4] = { 0x7fa00001, 0xff812345, 0x80000000, 0x00000001 };
    uint32_t back[4] = { 0 };
    struct hw_tensor host = hw_host_2d(bits, HW_F32, 2, 2),
                     result = hw_host_2d(back, HW_F32, 2, 2);
    (void)state;
    struct hw_tensor a = place(2, HW_F32, 2, 2, NULL), b = place(3, HW_F32, 2, 2, NULL);
    ok(copy_between(w.on_near, &a, &host));
    ok(copy_between(w.on_near, &b, &a));
    ok(copy_between(w.on_near, &result, &b));
    ok(hw_queue_wait(w.on_near));
    assert_memory_equal(back, bits, sizeof bits);
}

static void transposed_between_devices(void **state)
{
    float x[6] = { 1, 2, 3, 4, 5, 6 }, got[6];
    (void)state;
    struct hw_tensor a = put(w.on_near, x, 2, 3), b = place(3, HW_F32, 3, 2, NULL), turned;
    ok(hw_tensor_transpose(&turned, &a, 0, 1));
    ok(copy_between(w.on_far, &b, &turned));
    get(w.on_far, &b, got);
    const float expected[6] = { 1, 4, 2, 5, 3, 6 };
    assert_memory_equal(got, expected, sizeof got);
}

/* The test devices cannot convert: the CPU converts on the way. */
static void converted_between_devices(void **state)
{
    float x[64], got[64];
    (void)state;
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i - 32) / 4.0f; /* exact in f16 */
    struct hw_tensor a = put(w.on_near, x, 2, 32), b = place(3, HW_F16, 2, 32, NULL);
    ok(copy_between(w.on_near, &b, &a));
    get(w.on_far, &b, got);
    assert_memory_equal(got, x, sizeof x);
    struct hw_tensor blocks = place(3, HW_Q8_0, 2, 32, NULL);
    ok(copy_between(w.on_far, &blocks, &b));
    get(w.on_near, &blocks, got);
    for (int i = 0; i < 64; i++)
        assert_true(got[i] > x[i] - 0.1f && got[i] < x[i] + 0.1f);
}

/* hw_submit() accepts a copy between any two places, as it accepts every other op. */
static void by_number(void **state)
{
    float x[6] = { 1, 2, 3, 4, 5, 6 }, got[6] = { 0 };
    (void)state;
    const struct hw_tensor a = put(w.on_near, x, 2, 3), b = place(3, HW_F32, 2, 3, NULL);
    const struct hw_copy op = { .src = a, .dst = b };
    ok(hw_submit(w.on_far, HW_OP_COPY, &op, sizeof op));
    get(w.on_far, &b, got);
    assert_memory_equal(got, x, sizeof x);
    fails(HW_INVALID, "discrete:0", hw_device_supports(w.far, HW_OP_COPY, &op, sizeof op));
}

static void written_and_read(void **state)
{
    const float x[6] = { 1, 2, 3, 4, 5, 6 };
    const float turned[6] = { 1, 4, 2, 5, 3, 6 };
    const struct hw_tensor absent = { 0 };
    float got[6], host[6];
    (void)state;
    for (int where = 0; where < 4; where++) {
        const struct hw_tensor t = place(where, HW_F32, 2, 3, host);
        struct hw_tensor view;
        ok(hw_tensor_transpose(&view, &t, 0, 1));
        memset(got, 0, sizeof got);
        ok(hw_tensor_write(w.on_near, &t, x, sizeof x));
        ok(hw_tensor_read(w.on_near, &view, got, sizeof got));
        ok(hw_queue_wait(w.on_near));
        assert_memory_equal(got, turned, sizeof got);
        ok(hw_tensor_write(w.on_near, &view, x, sizeof x));
        ok(hw_tensor_read(w.on_near, &view, got, sizeof got));
        ok(hw_queue_wait(w.on_near));
        assert_memory_equal(got, x, sizeof got);
        fails(HW_INVALID, "hw_tensor_write: bytes is 20, must be 24 for f32 [2, 3]",
              hw_tensor_write(w.on_near, &t, x, 20));
        fails(HW_INVALID, "hw_tensor_read: bytes is 28",
              hw_tensor_read(w.on_near, &t, got, 28));
        fails(HW_INVALID, "data must not be NULL",
              hw_tensor_read(w.on_near, &t, NULL, sizeof got));
        fails(HW_INVALID, "queue must not be NULL", hw_tensor_write(NULL, &t, x, sizeof x));
        hw_buffer_free(t.buffer);
    }
    fails(HW_INVALID, "tensor must not be NULL", hw_tensor_write(w.on_near, NULL, x, 0));
    fails(HW_INVALID, "it is absent", hw_tensor_read(w.on_near, &absent, got, 0));
    const struct hw_tensor none = place(2, HW_F32, 0, 3, NULL);
    ok(hw_tensor_write(w.on_near, &none, NULL, 0));
    const struct hw_tensor blocks = place(3, HW_Q8_0, 2, 32, NULL);
    unsigned char in[68], out[68] = { 0 };
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 3);
    ok(hw_tensor_write(w.on_far, &blocks, in, sizeof in));
    ok(hw_tensor_read(w.on_far, &blocks, out, sizeof out));
    ok(hw_queue_wait(w.on_far));
    assert_memory_equal(out, in, sizeof in);
}

/* A recorded copy reads the caller's memory at each launch. */
static void written_by_a_graph(void **state)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    struct hw_graph *graph;
    (void)state;
    const struct hw_tensor t = device_f32(w.near, (int64_t)4, END);
    ok(hw_queue_record(w.on_near));
    ok(hw_tensor_write(w.on_near, &t, x, sizeof x));
    ok(hw_tensor_read(w.on_near, &t, y, sizeof y));
    ok(hw_queue_end(w.on_near, &graph));
    for (int i = 0; i < 2; i++) {
        x[0] = (float)i;
        ok(hw_graph_launch(graph, w.on_near));
        ok(hw_queue_wait(w.on_near));
        assert_memory_equal(y, x, sizeof x);
    }
    hw_graph_free(graph);
}

/* A conversion on another device is a fallback: it is counted once per call, logged, and
 * rejected under HW_FALLBACK=error. A conversion on the queue's own device is not a
 * fallback. */
static void conversions_are_fallbacks(void **state)
{
    enum { N = 3 << 20 };
    static float x[N];
    struct world v;
    (void)state;
    x[N - 1] = 0.5f;
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        world_open(&v, forbidden ? "error" : NULL, NULL);
        const int64_t extents[] = { 2, N / 2 };
        struct hw_tensor a = put(v.on_near, x, 2, N / 2), b, back;
        ok(hw_tensor_alloc(v.far, 0, HW_F16, 2, extents, &b));
        ok(hw_tensor_alloc(v.cpu, 0, HW_F32, 2, extents, &back));
        const struct hw_call_stats before = calls(v.on_near, HW_OP_COPY);
        if (forbidden)
            fails(HW_UNSUPPORTED, "HW_FALLBACK=error", copy_between(v.on_near, &b, &a));
        else
            ok(copy_between(v.on_near, &b, &a));
        const struct hw_call_stats after = calls(v.on_near, HW_OP_COPY);
        assert_int_equal(after.calls, before.calls + !forbidden);
        assert_int_equal(after.fallbacks, before.fallbacks + !forbidden);
        assert_int_equal(v.log_lines, !forbidden);
        assert_true(forbidden || strstr(v.log, "copy (f32 f16) runs on cpu:0 instead of "
                                               "discrete:0"));
        ok(copy_between(v.on_cpu, &b, &a));
        ok(copy_between(v.on_cpu, &back, &b));
        get(v.on_cpu, &back, x);
        assert_true(x[0] == 0.0f && x[N - 1] == 0.5f);
        assert_int_equal(calls(v.on_cpu, HW_OP_COPY).fallbacks, 0);
        assert_int_equal(v.log_lines, !forbidden);
        world_close(&v);
    }
}

/* Copies of more than one slice: many rows, and one long row. */
static void in_slices(void **state)
{
    enum { N = 3 << 20 };
    float *x = malloc(2 * (size_t)N * sizeof *x), *back = x + N;
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 100003);
    const int64_t shapes[][2] = { { 1, N }, { 3, N / 3 }, { N / 2, 2 } };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        struct hw_tensor host = hw_host_2d(x, HW_F32, shapes[k][0], shapes[k][1]);
        struct hw_tensor result = hw_host_2d(back, HW_F32, shapes[k][0], shapes[k][1]);
        struct hw_tensor a = place(2, HW_F32, shapes[k][0], shapes[k][1], NULL);
        struct hw_tensor b = place(3, HW_F32, shapes[k][0], shapes[k][1], NULL);
        memset(back, 0, N * sizeof *back);
        ok(copy_between(w.on_near, &a, &host));
        ok(copy_between(w.on_near, &b, &a));
        ok(copy_between(w.on_far, &result, &b));
        ok(hw_queue_wait(w.on_far));
        assert_memory_equal(back, x, N * sizeof *x);
        hw_buffer_free(a.buffer);
        hw_buffer_free(b.buffer);
    }
    free(x);
}

static int32_t end_is_gone(void *queue, const struct hw_transfer *transfer)
{
    (void)queue, (void)transfer;
    return plugin_message_set(HW_LOST, "one end is gone");
}

/* When a direct copy between two devices reports a lost device, only the device at the
 * other end is lost. The queue's device still works. */
static void the_lost_end_is_reported(void **state)
{
    (void)state;
    for (int out = 0; out < 2; out++) {
        struct world v;
        float x[6] = { 1, 2, 3, 4, 5, 6 };
        world_open(&v, NULL, NULL);
        const struct hw_tensor a = put(v.on_near, x, 2, 3), b = put(v.on_far, x, 2, 3);
        int32_t (*real)(void *,
                        const struct hw_transfer *) = v.near->plugin->table.transfer;
        ok(copy_between(v.on_near, &b,
                        &a)); /* uses a helper queue, which is lost with its device */
        ok(hw_extension_call(v.on_far, "discrete.lose", NULL, 0));
        assert_int_equal(v.far->plugin->table.queue_wait(v.on_far->impl), HW_LOST);
        v.near->plugin->table.transfer = end_is_gone;
        fails(HW_LOST, "one end is gone",
              copy_between(v.on_near, out ? &b : &a, out ? &a : &b));
        v.near->plugin->table.transfer = real;
        fails(HW_LOST, "discrete:1 is lost",
              hw_add(v.on_far, &(struct hw_add){ .a = b, .b = b, .y = b }));
        ok(hw_add(v.on_near, &(struct hw_add){ .a = a, .b = a, .y = a }));
        ok(hw_queue_wait(v.on_near));
        assert_int_equal(v.log_lines, 1);
        world_close(&v);
    }
}

static void impossible_copies_are_rejected(void **state)
{
    struct hw_tensor a = place(2, HW_F32, 2, 3, NULL), b = place(3, HW_F32, 3, 2, NULL);
    struct hw_tensor c = place(3, HW_I32, 2, 3, NULL),
                     beyond = place(3, HW_F32, 2, 3, NULL);
    (void)state;
    fails(HW_INVALID, "dst", copy_between(w.on_near, &b, &a));
    fails(HW_INVALID, "dst", copy_between(w.on_near, &c, &a));
    beyond.offset = 8;
    fails(HW_INVALID, "dst", copy_between(w.on_near, &beyond, &a));
    fails(HW_INVALID, "src", copy_between(w.on_near, &a, &beyond));
    fails(HW_INVALID, "NULL", hw_copy(w.on_near, NULL));
    fails(HW_INVALID, "NULL", copy_between(NULL, &b, &a));
}

/* An invalid tensor is rejected before any size is computed from it. The copies are between
 * host and device memory, which move bytes without the copy op. */
static void invalid_tensors_are_rejected(void **state)
{
    float x[6] = { 0 };
    const struct hw_tensor good = place(2, HW_F32, 2, 3, NULL),
                           host = host_f32(x, (int64_t)2, (int64_t)3, END);
    const uint64_t before = calls(w.on_near, HW_OP_COPY).calls;
    (void)state;
    for (int out = 0; out < 2; out++) {
        struct hw_tensor a = good, b = host;
        const struct hw_tensor *dst = out ? &b : &a, *src = out ? &a : &b;
        a.dtype = b.dtype = 77;
        fails(HW_INVALID, "77 is not a dtype", copy_between(w.on_near, dst, src));
        a.dtype = b.dtype = -1;
        fails(HW_INVALID, "-1 is not a dtype", copy_between(w.on_near, dst, src));
        a.dtype = b.dtype = HW_F32;
        a.rank = b.rank = 300;
        fails(HW_INVALID, "rank is 300", copy_between(w.on_near, dst, src));
        a.rank = b.rank = 2;
        a.extent[0] = -2;
        fails(HW_INVALID, "extent[0]", copy_between(w.on_near, dst, src));
        a.extent[0] = 1;
        fails(HW_INVALID, "dst must have the extents", copy_between(w.on_near, dst, src));
    }
    assert_int_equal(calls(w.on_near, HW_OP_COPY).calls, before);
}

/* Many rows of one block each. The test device cannot copy blocks, and the helper has no
 * fallback, so each row is a transfer. */
static void many_blocks(void **state)
{
    enum { ROWS = 100, BLOCK_BYTES = 34 };
    static const int64_t extents[] = { ROWS, 64 };
    unsigned char x[ROWS * BLOCK_BYTES], y[ROWS * BLOCK_BYTES] = { 0 };
    struct hw_tensor wide, half, host;
    (void)state;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)(i * 7);
    ok(hw_tensor_alloc(w.near, HW_BUFFER_ZEROED, HW_Q8_0, 2, extents, &wide));
    ok(hw_tensor_slice(&half, &wide, 1, 32, 64));
    ok(hw_tensor_host(&host, x, HW_Q8_0, 2, half.extent));
    ok(copy_between(w.on_cpu, &half, &host));
    ok(hw_tensor_host(&host, y, HW_Q8_0, 2, half.extent));
    ok(copy_between(w.on_cpu, &host, &half));
    ok(hw_queue_wait(w.on_cpu));
    assert_memory_equal(x, y, sizeof x);
    hw_buffer_free(wide.buffer);
}

/* The second context has as many devices as the first, or fewer. Its queues have no helpers
 * for devices of the first. */
static void contexts_do_not_mix(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "cpu",
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .threads = "1",
                                        .log = "off" };
    struct hw_context *context;
    struct hw_queue *queue;
    struct hw_event *event;
    struct hw_buffer *buffer;
    float x[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    ok(hw_open(&options, &context));
    ok(hw_queue_open(hw_device_default(context), NULL, &queue));
    const struct hw_tensor host = host_f32(x, (int64_t)2, (int64_t)3, END);
    for (int where = 1; where < 4; where++) {
        const struct hw_tensor theirs = place(where, HW_F32, 2, 3, NULL);
        fails(HW_INVALID, "src is in a buffer of another context",
              copy_between(queue, &host, &theirs));
        fails(HW_INVALID, "dst is in a buffer of another context",
              copy_between(queue, &theirs, &host));
        fails(HW_INVALID, "x (f32 [2, 3]): it is in a buffer of another context",
              hw_silu(queue, &(struct hw_silu){ .x = theirs, .y = theirs }));
    }
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_event_record(event, w.on_near));
    fails(HW_INVALID, "different contexts", hw_event_wait(event, queue));
    /* The buffer is freed when the call returns, because the queue is of another context. */
    const struct hw_pool_stats before = pool(hw_device_default(context));
    ok(hw_buffer_alloc(hw_device_default(context), 1000, 0, &buffer));
    hw_buffer_free_after(buffer, w.on_near);
    assert_int_equal(pool(hw_device_default(context)).used, before.used);
    hw_close(context);
    ok(hw_queue_wait(w.on_near));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_between_all_places),
        cmocka_unit_test(copies_are_exact),
        cmocka_unit_test(transposed_between_devices),
        cmocka_unit_test(converted_between_devices),
        cmocka_unit_test(by_number),
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(written_by_a_graph),
        cmocka_unit_test(conversions_are_fallbacks),
        cmocka_unit_test(in_slices),
        cmocka_unit_test(the_lost_end_is_reported),
        cmocka_unit_test(impossible_copies_are_rejected),
        cmocka_unit_test(invalid_tensors_are_rejected),
        cmocka_unit_test(many_blocks),
        cmocka_unit_test(contexts_do_not_mix),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
