/* SPDX-License-Identifier: MIT */
/* test_route.c - the slow path: host tensors are staged and views are made contiguous,
 * correctly and counted; and the cases that are rejected. test_fallback.c covers ops
 * that the device cannot compute. */
#include "world.h"

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

/* An op reads results that the previous op has yet to write to the host, in place and with
 * strides. */
static void pending_staged_results_are_read(void **state)
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

/* There are too many rows for one transfer each, so the host scatters them at the wait. */
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
    ok(hw_silu(w.on_near,
               &(struct hw_silu){ .x = b, .y = b })); /* reads the pending result */
    ok(hw_queue_wait(w.on_near));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 4; c++)
            close_to(y[4 * r + c], c == 1 || c == 2 ? silu(silu(x[4 * r + c])) : 0.0f);
    world_close(&w);
}

/* Large tensors are transferred directly instead of being gathered first. */
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

/* A buffer and its host address refer to the same memory. Ops on both run in order, with
 * few pieces and with many. */
static void buffers_and_their_addresses_keep_order(void **state)
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

/* matmul has flags for transposed matrices, so they are not copied. */
static void transposed_matrices_are_not_copied(void **state)
{
    struct world w;
    float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 0, 2, 1, 0, 3 }, zero[4] = { 0 }, got[4];
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_tensor ta = put(w.on_near, a, 2, 3), tb = put(w.on_near, b, 2, 3),
                     c = put(w.on_near, zero, 2, 2), turned;
    ok(hw_tensor_transpose(&turned, &tb, 0, 1)); /* [3,2], the shape of b */
    ok(hw_matmul(w.on_near, &(struct hw_matmul){ .a = ta, .b = turned, .c = c }));
    get(w.on_near, &c, got);
    const float expected[4] = { 7, 10, 16, 22 };
    for (int i = 0; i < 4; i++)
        close_to(got[i], expected[i]);
    assert_int_equal(calls(w.on_near, HW_OP_MATMUL).copied_views, 0);
    world_close(&w);
}

/* The transpose flags of matmul that the plugin rejects. */
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

/* The plugin rejects the flag that would describe the view, so the view is copied. */
static void views_use_only_supported_flags(void **state)
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

/* ---- rejected calls ---- */

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

static void supports_agrees_with_submit(void **state)
{
    struct world w;
    float x[6] = { 0 };
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_mul op = { .a = put(w.on_near, x, 2, 3),
                         .b = put(w.on_near, x, 2, 3),
                         .y = put(w.on_near, x, 2, 3) };
    struct hw_silu good = { .x = op.a, .y = op.y };
    fails(HW_UNSUPPORTED, "mul", hw_device_supports(w.near, HW_OP_MUL, &op, sizeof op));
    ok(hw_device_supports(w.near, HW_OP_SILU, &good, sizeof good));
    good.y.extent[1] = 2;
    fails(HW_INVALID, "y", hw_device_supports(w.near, HW_OP_SILU, &good, sizeof good));
    /* Nothing to compute: the op must be supported all the same. */
    op.a.extent[0] = op.b.extent[0] = op.y.extent[0] = 0;
    fails(HW_UNSUPPORTED, "has no mul",
          hw_device_supports(w.near, HW_OP_MUL, &op, sizeof op));
    good.x.extent[0] = good.y.extent[0] = 0;
    good.y.extent[1] = good.x.extent[1];
    ok(hw_device_supports(w.near, HW_OP_SILU, &good, sizeof good));
    world_close(&w);
}

/* An empty cache may have any strides: the plugin is asked about zero strides. */
static void strides_of_empty_inputs_are_zero(void **state)
{
    struct world w;
    float q[8] = { 1 }, k[16], y[8];
    (void)state;
    world_open(&w, "error", NULL);
    struct hw_tensor all = host_f32(k, (int64_t)1, (int64_t)2, (int64_t)8, END), none;
    ok(hw_tensor_slice(&none, &all, 0, 0, 0));
    none.extent[2] = 4;
    none.stride[2] = 8;
    const struct hw_attention op = {
        .q = host_f32(q, (int64_t)1, (int64_t)2, (int64_t)4, END),
        .k = none,
        .v = none,
        .y = host_f32(y, (int64_t)1, (int64_t)2, (int64_t)4, END)
    };
    ok(hw_device_supports(w.cpu, HW_OP_ATTENTION, &op, sizeof op));
    fill(y, 8);
    ok(hw_attention(w.on_cpu, &op));
    ok(hw_queue_wait(w.on_cpu));
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == 0.0f);
    assert_int_equal(calls(w.on_cpu, HW_OP_ATTENTION).copied_views, 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_tensors_are_staged),
        cmocka_unit_test(pending_staged_results_are_read),
        cmocka_unit_test(many_rows_are_scattered),
        cmocka_unit_test(large_tensors_are_staged),
        cmocka_unit_test(buffers_and_their_addresses_keep_order),
        cmocka_unit_test(views_on_every_device),
        cmocka_unit_test(repeated_views),
        cmocka_unit_test(transposed_matrices_are_not_copied),
        cmocka_unit_test(views_use_only_supported_flags),
        cmocka_unit_test(strides_of_empty_inputs_are_zero),
        cmocka_unit_test(buffers_of_another_device),
        cmocka_unit_test(supports_agrees_with_submit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
