/* SPDX-License-Identifier: MIT */
/* test_transfer.c - the library's calls of a plugin's transfer(): between which places, and how
 * often. */
#include "call/queue.h"
#include "memory/transfer.h"
#include "world.h"

static struct world w;
static int32_t (*theirs)(void *queue, const struct hw_transfer *transfer);

/* The transfers since the last reset. */
static struct {
    int calls, into_pinned, from_pinned, bare;
    int shared; /* operands of an op */
} asked;

static int32_t listen(void *queue, const struct hw_transfer *t)
{
    asked.calls++;
    asked.bare += !t->dst || !t->src;
    asked.into_pinned += t->dst && t->dst->flags & HW_BUFFER_PINNED;
    asked.from_pinned += t->src && t->src->flags & HW_BUFFER_PINNED;
    return theirs(queue, t);
}

static int open_world(void **state)
{
    (void)state;
    world_open(&w, NULL, NULL);
    theirs = w.near->plugin->table.transfer;
    w.near->plugin->table.transfer = listen;
    memset(&asked, 0, sizeof asked);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&w);
    return 0;
}

static void count_up(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)i;
}

/* ---- staging ---- */

/* Some APIs cannot find the memory behind an address, so pinned memory is passed by its
 * handle. */
static void pinned_memory_is_a_buffer(void **state)
{
    enum { ROWS = 1024 };
    static float x[ROWS * 8], y[ROWS * 8];
    struct hw_tensor all, half, rows;
    (void)state;
    count_up(x, ROWS * 8);
    struct hw_tensor a = device_f32(w.near, (int64_t)ROWS, (int64_t)4, END);
    all = host_f32(x, (int64_t)ROWS, (int64_t)8, END);
    ok(hw_tensor_slice(&half, &all, 1, 0, 4));
    ok(copy_between(w.on_near, &a, &half));
    assert_int_equal(asked.from_pinned, 1);
    all = host_f32(y, (int64_t)ROWS, (int64_t)8, END);
    ok(hw_tensor_transpose(&half, &all, 0, 1)); /* no two elements are adjacent */
    ok(hw_tensor_slice(&rows, &half, 0, 4, 8));
    ok(hw_tensor_transpose(&rows, &rows, 0, 1));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = a }));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = rows }));
    ok(hw_queue_wait(w.on_near));
    assert_true(asked.into_pinned >= 1);
    assert_int_equal(asked.bare, 0);
    assert_true(y[0] == 0.0f && y[4] == 0.0f && y[12] != 0.0f &&
                y[(ROWS - 1) * 8 + 7] != 0.0f);
}

/* The device reads and writes these operands in host-visible memory, too. */
static void small_tensors_are_shared(void **state)
{
    enum { MOST = 2048 }; /* 8 KiB */
    static float x[MOST + 1], y[MOST + 1];
    (void)state;
    for (int more = 0; more < 2; more++) {
        memset(&asked, 0, sizeof asked);
        count_up(x, MOST + 1);
        const struct hw_tensor a = host_f32(x, (int64_t)(MOST + more), END),
                               b = host_f32(y, (int64_t)(MOST + more), END);
        ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = b }));
        x[1] = 0.0f;
        ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = b, .y = b })); /* b: pending */
        ok(hw_queue_wait(w.on_near));
        close_to(y[1], silu(1.0f));
        close_to(y[MOST - 1], silu(MOST - 1.0f) + MOST - 1.0f);
        assert_int_equal(asked.calls, more ? 5 : 0);
        assert_int_equal(asked.from_pinned, more ? 3 : 0);
        memset(y, 0, sizeof y);
    }
}

static void small_views_are_shared(void **state)
{
    enum { ROWS = 32, COLS = 8 };
    static float x[ROWS * COLS], y[ROWS * COLS];
    struct hw_tensor a = host_f32(x, (int64_t)ROWS, (int64_t)COLS, END),
                     b = host_f32(x, (int64_t)COLS, (int64_t)ROWS, END);
    (void)state;
    count_up(x, ROWS * COLS);
    ok(hw_tensor_transpose(&b, &b, 0, 1));
    struct hw_tensor row = host_f32(x, (int64_t)ROWS, (int64_t)COLS, END);
    row.stride[0] = 0;
    const struct hw_tensor sum = host_f32(y, (int64_t)ROWS, (int64_t)COLS, END);
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = b, .y = sum }));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = sum, .b = row, .y = sum }));
    ok(hw_queue_wait(w.on_near));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            assert_true(y[r * COLS + c] == x[r * COLS + c] + x[c * ROWS + r] + x[c]);
    assert_int_equal(asked.from_pinned, 0);
}

/* A kernel may read these operands once for each row of the others. */
static void small_tensors_beside_large_ones_are_staged(void **state)
{
    enum { ROWS = 64, INNER = 128, COLS = 4 };
    static float x[ROWS * INNER], weight[INNER * COLS], y[ROWS * COLS];
    (void)state;
    count_up(x, ROWS * INNER);
    weight[COLS] = 1.0f;
    const struct hw_tensor c = host_f32(y, (int64_t)ROWS, (int64_t)COLS, END);
    struct hw_matmul op = { .a = put(w.on_near, x, ROWS, INNER),
                            .b = host_f32(weight, (int64_t)INNER, (int64_t)COLS, END),
                            .c = put(w.on_near, y, ROWS, COLS) };
    memset(&asked, 0, sizeof asked);
    ok(hw_matmul(w.on_near, &op));
    assert_int_equal(asked.from_pinned, 1);
    op.a = host_f32(x, (int64_t)ROWS, (int64_t)INNER, END);
    op.c = c;
    ok(hw_matmul(w.on_near, &op));
    assert_int_equal(asked.from_pinned, 3);
    ok(hw_queue_wait(w.on_near));
    close_to(y[COLS], x[INNER + 1]);
}

static int32_t supports_all(void *device, uint32_t op, const void *args, char *why,
                            size_t why_bytes, uint64_t *scratch)
{
    (void)device, (void)op, (void)args, (void)why, (void)why_bytes, (void)scratch;
    return HW_OK;
}

static int32_t set_no_rows(void *device, void *queue, const struct hw_set_rows *op)
{
    (void)device, (void)queue;
    float *table = hw_tensor_address(&op->table);
    asked.shared += !!(op->x.buffer->flags & HW_BUFFER_PINNED) +
                    !!(op->rows.buffer->flags & HW_BUFFER_PINNED) +
                    !!(op->table.buffer->flags & HW_BUFFER_PINNED);
    table[3] = table[0] + table[7];
    return HW_OK;
}

/* A table that is read and written is copied to shared memory first, and back afterwards. */
static void small_tables_are_shared(void **state)
{
    struct hw_plugin_ops ops = *w.near->plugin->table.ops;
    float x[2] = { 5, 6 }, table[8] = { 7, 0, 0, 0, 0, 0, 0, 8 };
    int32_t row = 2;
    (void)state;
    ops.set_rows = w.on_near->ops.set_rows = set_no_rows;
    w.near->plugin->table.ops = &ops;
    w.near->plugin->table.supports = supports_all;
    const struct hw_set_rows op = { .x = host_f32(x, (int64_t)1, (int64_t)2, END),
                                    .rows = hw_host_1d(&row, HW_I32, 1),
                                    .table = host_f32(table, (int64_t)4, (int64_t)2, END) };
    ok(hw_set_rows(w.on_near, &op));
    ok(hw_queue_wait(w.on_near));
    assert_int_equal(asked.shared, 3);
    assert_int_equal(asked.calls, 0);
    assert_true(table[0] == 7.0f && table[3] == 15.0f && table[7] == 8.0f);
}

/* After waiting for an event, the host sees the last result submitted before it. */
static void events_bring_results_into_order(void **state)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 }, z[8] = { 0 };
    const struct hw_tensor a = host_f32(x, (int64_t)4, END),
                           b = host_f32(y, (int64_t)4, END),
                           d = host_f32(x, (int64_t)4, (int64_t)1, END);
    struct hw_tensor c = host_f32(z, (int64_t)4, (int64_t)2, END);
    struct hw_event *event;
    (void)state;
    ok(hw_tensor_slice(&c, &c, 1, 1, 2));
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = b }));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = d, .b = d, .y = c })); /* with gaps */
    assert_int_equal(asked.calls, 0);
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_sync(event));
    close_to(y[0], silu(1.0f));
    close_to(y[3], silu(4.0f));
    assert_true(z[0] == 0.0f && z[1] == 2.0f && z[2] == 0.0f && z[7] == 8.0f);
    const int once = asked.calls;
    assert_int_equal(once, 3);
    memset(y, 0, sizeof y);
    ok(hw_queue_wait(w.on_near)); /* they were written already */
    assert_int_equal(asked.calls, once);
    assert_true(y[0] == 0.0f);
}

/* ---- rows ---- */

/* A view of a tensor [3, 5, 2, 8 + 24] of f32 in device or host memory. `calls` is the
 * number of transfers that copy the view to a dense tensor, or back. */
struct form {
    int rank; /* rank of the tensor without its outermost axes */
    int64_t first[HW_MAX_RANK], end[HW_MAX_RANK];
    int swap; /* this axis and the next are swapped; -1: none */
    int calls;
};

#define ROOM (3 * 5 * 2 * 32)

static void rows_are_transferred_in_one_call(void **state)
{
    static const struct form forms[] = {
        { 1, { 3 }, { 27 }, -1, 1 },
        { 2, { 0, 0 }, { 2, 32 }, -1, 1 },
        { 2, { 0, 4 }, { 2, 28 }, -1, 1 },             /* a matrix with gaps */
        { 3, { 0, 0, 4 }, { 5, 2, 28 }, -1, 1 },       /* rows at even distances */
        { 3, { 1, 0, 4 }, { 4, 1, 28 }, -1, 1 },       /* every second row */
        { 3, { 0, 0, 4 }, { 5, 2, 28 }, 0, 2 },        /* planes with swapped axes */
        { 4, { 0, 1, 0, 4 }, { 3, 3, 2, 28 }, -1, 3 }, /* planes with gaps between */
        { 4, { 1, 1, 0, 0 }, { 3, 3, 1, 32 }, 1, 2 },
        { 4, { 0, 0, 0, 0 }, { 3, 5, 2, 32 }, -1, 1 },
        { 3, { 0, 0, 0 }, { 2, 2, 32 }, 1, 4 * 32 / 2 }, /* no two elements are adjacent */
    };
    static const int64_t room[HW_MAX_RANK] = { 3, 5, 2, 32 };
    static float x[ROOM], y[ROOM], dense[ROOM], wanted[ROOM];
    (void)state;
    count_up(x, ROOM);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int outward = 0; outward < 2; outward++) {
            const struct form *f = &forms[i];
            struct hw_tensor on_host, view, whole, packed, on_device;
            ok(hw_tensor_host(&on_host, x, HW_F32, f->rank, room + HW_MAX_RANK - f->rank));
            ok(hw_tensor_alloc(w.near, HW_BUFFER_ZEROED, HW_F32, f->rank, on_host.extent,
                               &whole));
            if (!outward) /* the view is on the device */
                ok(copy_between(w.on_near, &whole, &on_host));
            view = outward ? on_host : whole;
            for (int axis = 0; axis < f->rank; axis++)
                ok(hw_tensor_slice(&view, &view, axis, f->first[axis], f->end[axis]));
            if (f->swap >= 0)
                ok(hw_tensor_transpose(&view, &view, f->swap, f->swap + 1));
            ok(hw_tensor_host(&packed, wanted, HW_F32, f->rank, view.extent));
            struct hw_tensor seen = view;
            seen.buffer = NULL;
            seen.data = x;
            host_move(&packed, &seen);
            ok(hw_queue_wait(w.on_near));
            asked.calls = 0;
            if (outward) {
                ok(hw_tensor_alloc(w.near, 0, HW_F32, f->rank, view.extent, &on_device));
                ok(queue_move(w.on_near, &on_device, &view));
                assert_int_equal(asked.calls, f->calls);
                packed.data = dense;
                ok(copy_between(w.on_near, &packed, &on_device));
            } else {
                packed.data = dense;
                ok(queue_move(w.on_near, &packed, &view));
                assert_int_equal(asked.calls, f->calls);
            }
            ok(hw_queue_wait(w.on_near));
            assert_memory_equal(dense, wanted, hw_tensor_bytes(&packed));
            /* Moving back must not change the gaps. */
            memset(y, 0, sizeof y);
            view.buffer = NULL;
            view.data = y;
            packed.data = wanted;
            ok(hw_tensor_alloc(w.near, 0, HW_F32, f->rank, view.extent, &on_device));
            ok(queue_move(w.on_near, &on_device, &packed));
            ok(queue_move(w.on_near, &view, &on_device));
            ok(hw_queue_wait(w.on_near));
            double sum = 0, sum_wanted = 0;
            for (int k = 0; k < ROOM; k++)
                sum += y[k];
            for (uint64_t k = 0; k < hw_tensor_bytes(&packed) / sizeof *wanted; k++)
                sum_wanted += wanted[k];
            assert_true(sum == sum_wanted);
            for (int k = 0; k < ROOM; k++)
                assert_true(y[k] == 0.0f || y[k] == x[k]);
        }
}

/* A repeated source is not transferred as rows, because its pitch would be less than a row. */
static void repeated_rows_are_transferred_singly(void **state)
{
    float x[40], y[4][40];
    (void)state;
    count_up(x, 40);
    struct hw_tensor a = device_f32(w.near, (int64_t)4, (int64_t)40, END),
                     row = host_f32(x, (int64_t)4, (int64_t)40, END);
    row.stride[0] = 0;
    ok(queue_move(w.on_near, &a, &row));
    assert_int_equal(asked.calls, 4);
    get(w.on_near, &a, y[0]);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(y[i], x, sizeof x);
}

/* An empty tensor may have any strides, and they are ignored. */
static void empty_tensors_are_not_transferred(void **state)
{
    static float x[1];
    (void)state;
    struct hw_tensor a = device_f32(w.near, (int64_t)2, (int64_t)2, (int64_t)0, END),
                     far = host_f32(x, (int64_t)2, (int64_t)2, (int64_t)0, END);
    far.stride[0] = 4;
    far.stride[1] = INT64_C(1) << 62; /* twice that overflows */
    assert_int_equal(move_count(&far, &a), 0);
    asked.calls = 0;
    ok(copy_between(w.on_near, &far, &a));
    ok(copy_between(w.on_near, &a, &far));
    ok(hw_queue_wait(w.on_near));
    assert_int_equal(asked.calls, 0);
}

static int copied; /* number of copies made by a kernel */
static int32_t (*their_copy)(void *device, void *queue, const struct hw_copy *op);

static int32_t count_copy(void *device, void *queue, const struct hw_copy *op)
{
    copied++;
    return their_copy(device, queue, op);
}

/* Long rows need no copy by a kernel, in any number. Single elements do. */
static void many_long_rows_are_transferred(void **state)
{
    enum { ROWS = 1000, COLS = 16 };
    static float x[ROWS * 2 * COLS], y[ROWS * COLS];
    (void)state;
    count_up(x, ROWS * 2 * COLS);
    their_copy = w.on_near->ops.copy;
    w.on_near->ops.copy = count_copy;
    copied = 0;
    struct hw_tensor all = put(w.on_near, x, ROWS, 2 * COLS), half,
                     host = host_f32(y, (int64_t)ROWS, (int64_t)COLS, END);
    ok(hw_tensor_slice(&half, &all, 1, COLS, 2 * COLS));
    asked.calls = 0;
    ok(copy_between(w.on_near, &host, &half));
    ok(hw_queue_wait(w.on_near));
    assert_int_equal(asked.calls, 1);
    assert_true(y[0] == x[COLS] && y[ROWS * COLS - 1] == x[ROWS * 2 * COLS - 1]);
    ok(hw_tensor_slice(&half, &all, 1, 0, COLS));
    asked.calls = 0;
    ok(copy_between(w.on_near, &half, &host));
    assert_int_equal(asked.calls, 1);
    get(w.on_near, &all, x);
    assert_true(x[0] == (float)COLS && x[COLS] == (float)COLS);
    assert_int_equal(copied, 0);
    host = host_f32(y, (int64_t)ROWS, (int64_t)1, END);
    ok(hw_tensor_slice(&half, &all, 1, 1, 2));
    ok(copy_between(w.on_near, &host, &half));
    ok(hw_queue_wait(w.on_near));
    assert_int_equal(copied, 1);
    assert_true(y[0] == (float)COLS + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(pinned_memory_is_a_buffer),
        TEST(small_tensors_are_shared),
        TEST(small_views_are_shared),
        TEST(small_tensors_beside_large_ones_are_staged),
        TEST(small_tables_are_shared),
        TEST(events_bring_results_into_order),
        TEST(rows_are_transferred_in_one_call),
        TEST(repeated_rows_are_transferred_singly),
        TEST(empty_tensors_are_not_transferred),
        TEST(many_long_rows_are_transferred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
