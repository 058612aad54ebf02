/* SPDX-License-Identifier: MIT */
/* transfer.c - what the library asks of a plugin's transfer(): which places, in how many calls. */
#include "unit.h"

static struct world w;
static int32_t (*theirs)(void *queue, const struct hw_transfer *transfer);

/* What was asked since the last look. */
static struct {
    int calls, into_pinned, from_pinned, bare;
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

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)i;
}

/* ---- staging ---- */

/* Not every API finds the memory behind an address: pinned memory goes by its handle. */
static void pinned_memory_is_a_buffer(void **state)
{
    float x[64 * 8], y[64 * 8] = { 0 };
    struct hw_tensor all, half, rows;
    (void)state;
    fill(x, 64 * 8);
    struct hw_tensor a = device_f32(w.near, (int64_t)64, (int64_t)4, END);
    all = host_f32(x, (int64_t)64, (int64_t)8, END);
    ok(hw_tensor_slice(&half, &all, 1, 0, 4));
    ok(hw_copy(w.on_near, &a, &half));
    assert_int_equal(asked.from_pinned, 1);
    all = host_f32(y, (int64_t)64, (int64_t)8, END);
    ok(hw_tensor_transpose(&half, &all, 0, 1)); /* no two elements lie together */
    ok(hw_tensor_slice(&rows, &half, 0, 4, 8));
    ok(hw_tensor_transpose(&rows, &rows, 0, 1));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = a }));
    ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = rows }));
    ok(hw_queue_wait(w.on_near));
    assert_true(asked.into_pinned >= 1);
    assert_int_equal(asked.bare, 0);
    assert_true(y[0] == 0.0f && y[4] == 0.0f && y[12] != 0.0f && y[63 * 8 + 7] != 0.0f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = { TEST(pinned_memory_is_a_buffer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
