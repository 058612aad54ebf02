/* SPDX-License-Identifier: MIT */
/* test_seen.c - the quick check of repeated calls (call/seen.h): it must recognise them, and never
 * accept a call that the full check rejects. */
#define _POSIX_C_SOURCE 200809L
#include "calls.h"

#include "base/message.h"
#include "call/check.h"
#include "call/queue.h"
#include "call/seen.h"
#include "memory/device.h"

#include <sys/wait.h>
#include <unistd.h>

/* Whether all bytes match a remembered call whose addresses are still valid. */
static bool is_repeated(struct hw_queue *queue, uint32_t op, const void *args)
{
    const struct seen_call *call = seen_first(queue, op, args);
    return call && call->op == op && call->stamp == stamp_of(queue, memory_order_relaxed) &&
           same_call(call, args, &op_rows[op]);
}

/* Whether the quick check recognises the call. It must if all addresses match. */
static bool seen_on(struct hw_queue *queue, uint32_t op, const void *args)
{
    const struct seen_call *call = seen_first(queue, op, args);
    while (call && !(call->op == op && is_like(queue, call, args, &op_rows[op])))
        call = call->next;
    const bool like = call;
    if (!like && is_repeated(queue, op, args))
        fail_msg("%s: repeated, but not recognised", hw_op_name(op));
    return like;
}

static bool seen(uint32_t op, const union any_op *args)
{
    return seen_on(world.on_cpu, op, args);
}

/* Submits the call, which the quick check must recognise from then on. */
static void see(uint32_t op, const union any_op *args)
{
    ok(submit(op, args));
    if (!seen(op, args))
        fail_msg("%s: the same call is not recognised", hw_op_name(op));
}

/* Moves all operands to other addresses. */
static void move(uint32_t op, union any_op *u, size_t floats)
{
    for (uint32_t i = 0; i < op_rows[op].operand_count; i++)
        operand_in(u, &op_rows[op].operands[i])->data =
            (float *)operand_in(u, &op_rows[op].operands[i])->data + floats;
}

static void repeated_calls_are_recognised(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        union any_op u = valid_call(op), other = u;
        see(op, &u);
        move(op, &other, 4096);
        assert_true(seen(op, &other));
        /* The call without optional operands, next to the call with all of them. */
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++)
            if (role_optional(op_rows[op].operands[i].role) && !is_gated(op))
                memset(operand_in(&other, &op_rows[op].operands[i]), 0,
                       sizeof(struct hw_tensor));
        see(op, &other);
        assert_true(seen(op, &u));
    }
}

/* ---- the same addresses ---- */

/* An add of one row of `floats`, in a buffer of three rows. */
static struct hw_add add_in(struct hw_buffer *buffer, int64_t floats)
{
    const uint64_t bytes = 4 * (uint64_t)floats;
    struct hw_add add = { .a = f32(2, 1, floats, 0, 0) };
    add.a.data = NULL;
    add.a.buffer = buffer;
    add.b = add.y = add.a;
    add.b.offset = bytes;
    add.y.offset = 2 * bytes;
    return add;
}

/* Submits a call until its addresses are remembered: the first one is checked in full. */
static void repeat(struct hw_add *add)
{
    const uint32_t before = plugin_calls;
    for (int i = 0; i < ROUND && !is_repeated(world.on_cpu, HW_OP_ADD, add); i++)
        ok(hw_add(world.on_cpu, add));
    assert_true(is_repeated(world.on_cpu, HW_OP_ADD, add));
    ok(hw_add(world.on_cpu, add));
    assert_true(plugin_calls > before);
}

static void repeated_addresses_are_recognised(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const union any_op u = valid_call(op);
        for (int i = 0; i <= ROUND && !is_repeated(world.on_cpu, op, &u); i++)
            ok(submit(op, &u));
        if (!is_repeated(world.on_cpu, op, &u))
            fail_msg("%s: the same addresses are not recognised", hw_op_name(op));
        /* A change of any byte makes it another call. */
        for (size_t i = 0; i < op_rows[op].size; i++) {
            union any_op other = u;
            ((unsigned char *)&other)[i] ^= 1;
            assert_false(is_repeated(world.on_cpu, op, &other));
        }
    }
}

/* Repeats a call until its addresses are remembered, then submits it with one bit changed, and with
 * other operands if it `moves`. The answer must equal the full check's. */
static void submit_changed(uint32_t op, const union any_op *u, size_t bit, bool moves)
{
    union any_op other = *u;
    if (moves)
        move(op, &other, 4096);
    for (int i = 0; i <= ROUND && !is_repeated(world.on_cpu, op, u); i++)
        ok(submit(op, u));
    ((unsigned char *)&other)[bit / 8] ^= (unsigned char)(1 << bit % 8);
    struct check check = { .device = world.cpu, .op = op };
    const enum hw_status whole = check_call(&other, &check);
    if (!whole && check.traits & (TRAIT_STRIDED | TRAIT_EMPTY))
        return; /* takes the cold path */
    const uint32_t before = plugin_calls;
    const enum hw_status answer = submit(op, &other);
    if (answer != whole || plugin_calls - before != !whole)
        fail_msg("%s: bit %zu: %d instead of %d", hw_op_name(op), bit, answer, whole);
}

/* Whether the bit belongs to a buffer's address, which a test cannot forge. */
static bool in_buffer(uint32_t op, size_t bit)
{
    const size_t byte = bit / 8, at = byte % sizeof(struct hw_tensor);
    return byte < op_rows[op].operand_count * sizeof(struct hw_tensor) &&
           at < sizeof(struct hw_buffer *);
}

/* On repeated addresses, with all operands and without the optional ones. */
static void no_change_is_missed(void **state)
{
    const size_t step = getenv("HW_TEST_QUICK") ? 7 : 1;
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const union any_op all = valid_call(op);
        union any_op least = all;
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++)
            if (role_optional(op_rows[op].operands[i].role) && !is_gated(op))
                memset(operand_in(&least, &op_rows[op].operands[i]), 0,
                       sizeof(struct hw_tensor));
        for (size_t bit = 0; bit < 8 * op_rows[op].size; bit += step) {
            if (in_buffer(op, bit))
                continue;
            submit_changed(op, &all, bit, false);
            submit_changed(op, &least, bit, false);
            submit_changed(op, &all, bit, true);
            submit_changed(op, &least, bit, true);
        }
    }
}

/* The dtype alone marks an operand as absent. Its other bytes are not read. */
static void absent_operands_may_hold_anything(void **state)
{
    struct hw_matmul op = valid_call(HW_OP_MATMUL).matmul;
    (void)state;
    memset(&op.bias, 0, sizeof op.bias);
    for (int i = 0; i <= ROUND && !is_repeated(world.on_cpu, HW_OP_MATMUL, &op); i++)
        ok(hw_matmul(world.on_cpu, &op));
    const uint32_t before = plugin_calls;
    for (size_t i = 0; i < sizeof op.bias; i++) {
        struct hw_matmul other = op;
        ((unsigned char *)&other.bias)[i] = 0x5A;
        const bool present = other.bias.dtype != HW_NONE;
        assert_int_equal(seen(HW_OP_MATMUL, (const void *)&other), !present);
        assert_int_equal(hw_matmul(world.on_cpu, &other), present ? HW_INVALID : HW_OK);
    }
    assert_int_equal(plugin_calls - before, sizeof op.bias - sizeof op.bias.dtype);
}

static void addresses_mean_others_after_a_free(void **state)
{
    struct hw_buffer *buffer, *other;
    (void)state;
    first_tensor(HW_F32, 1, 1, 0, 0, 0);
    ok(hw_buffer_alloc(world.cpu, 3 * 64 * 4, 0, &buffer));
    struct hw_add add = add_in(buffer, 64);
    repeat(&add);
    ok(hw_buffer_alloc(world.cpu, 64, 0, &other));
    assert_true(is_repeated(world.on_cpu, HW_OP_ADD, &add));
    hw_buffer_free(other);
    assert_false(is_repeated(world.on_cpu, HW_OP_ADD, &add));
    /* As if another buffer had the same address. */
    buffer->bytes--;
    fails(HW_INVALID, "add: y", hw_add(world.on_cpu, &add));
    buffer->bytes++;
    buffer->flags |= HW_BUFFER_READ_ONLY;
    fails(HW_INVALID, "add: y", hw_add(world.on_cpu, &add));
    buffer->flags &= ~(uint32_t)HW_BUFFER_READ_ONLY;
    void *device = buffer->device;
    buffer->device = NULL;
    buffer_of(buffer)->owner = world.near;
    fails(HW_INVALID, "add: a", hw_add(world.on_cpu, &add));
    buffer->device = device;
    buffer_of(buffer)->owner = world.cpu;
    repeat(&add);
    hw_buffer_free(buffer);
}

/* The allocator gives the freed buffer's struct memory to the next buffer. */
static void a_freed_buffer_can_be_replaced(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        struct hw_buffer *buffer, *small;
        first_tensor(HW_F32, 1, 1, 0, 0, 0);
        ok(hw_buffer_alloc(world.cpu, 3 * 64 * 4, 0, &buffer));
        struct hw_add add = add_in(buffer, 64);
        repeat(&add);
        const uintptr_t before = (uintptr_t)buffer;
        const uint64_t changes = world.cpu->changes;
        if (i % 2)
            hw_buffer_free(buffer);
        else
            hw_buffer_free_after(buffer, world.on_cpu);
        ok(hw_queue_wait(world.on_cpu)); /* the latest moment to free the second kind */
        assert_true(world.cpu->changes > changes);
        ok(hw_buffer_alloc(world.cpu, 2 * 64 * 4, 0, &small));
        if ((uintptr_t)small == before)
            fails(HW_INVALID, "add: y", hw_add(world.on_cpu, &add));
        hw_buffer_free(small);
    }
}

/* Two contexts may share one device of the plugin. Addresses freed in one context must not be
 * trusted in the other. */
static void buffers_of_other_contexts_are_not_relied_on(void **state)
{
    struct hw_buffer *buffer;
    (void)state;
    first_tensor(HW_F32, 1, 1, 0, 0, 0);
    ok(hw_buffer_alloc(world.cpu, 3 * 64 * 4, 0, &buffer));
    struct hw_add add = add_in(buffer, 64);
    buffer_of(buffer)->owner = world.near;
    for (int i = 0; i <= ROUND; i++)
        ok(hw_add(world.on_cpu, &add));
    assert_false(is_repeated(world.on_cpu, HW_OP_ADD, &add));
    buffer_of(buffer)->owner = world.cpu;
    hw_buffer_free(buffer);
}

static void lost_devices_are_noticed(void **state)
{
    struct hw_add add = valid_call(HW_OP_ADD).add;
    (void)state;
    repeat(&add);
    const uint32_t before = plugin_calls;
    assert_int_equal(device_result(world.cpu, HW_LOST), HW_LOST);
    for (int i = 0; i <= ROUND; i++)
        fails(HW_LOST, "cpu:0 is lost", hw_add(world.on_cpu, &add));
    assert_int_equal(plugin_calls, before);
    atomic_store(&world.cpu->lost, 0);
    repeat(&add);
}

static void forks_are_noticed(void **state)
{
    struct hw_add add = valid_call(HW_OP_ADD).add;
    int result = -1;
    (void)state;
    repeat(&add);
    const pid_t child = fork();
    if (child == 0) {
        int refused = 0;
        for (int i = 0; i <= ROUND; i++)
            refused += hw_add(world.on_cpu, &add) == HW_FORKED;
        _exit(refused == ROUND + 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    assert_true(is_repeated(world.on_cpu, HW_OP_ADD, &add));
}

/* A recording queue, and one that waits after each call, always use the full check. */
static void recording_looks_at_nothing(void **state)
{
    struct hw_add add = valid_call(HW_OP_ADD).add;
    struct hw_graph *graph;
    (void)state;
    repeat(&add);
    const uint32_t before = plugin_calls;
    ok(hw_queue_record(world.on_cpu));
    assert_ptr_equal(world.on_cpu->submit[HW_OP_ADD], submit_for(HW_OP_ADD, false));
    ok(hw_add(world.on_cpu, &add));
    assert_int_equal(plugin_calls, before);
    ok(hw_queue_end(world.on_cpu, &graph));
    hw_graph_free(graph);
    assert_ptr_equal(world.on_cpu->submit[HW_OP_ADD], submit_for(HW_OP_ADD, true));
    ok(hw_add(world.on_cpu, &add));
    assert_int_equal(plugin_calls, before + 1);
}

/* Calls are right for any sequence of addresses, and recognised once the addresses stay the
 * same. */
static void addresses_may_change_in_each_call(void **state)
{
    struct hw_buffer *buffer;
    (void)state;
    first_tensor(HW_F32, 1, 1, 0, 0, 0);
    ok(hw_buffer_alloc(world.cpu, 1 << 16, 0, &buffer));
    const struct hw_add add = add_in(buffer, 64);
    for (uint32_t i = 0; i < 3 * ROUND; i++) {
        struct hw_add moved = add;
        moved.a.offset = 64 * (uint64_t)(i % 7);
        moved.y.offset = (1 << 16) - (i % 5 ? 256 : 252);
        const enum hw_status status = hw_add(world.on_cpu, &moved);
        assert_int_equal(status, i % 5 ? HW_OK : HW_INVALID);
        moved.y.offset = moved.a.offset + 128;
        assert_int_equal(hw_add(world.on_cpu, &moved), HW_INVALID);
    }
    struct hw_add again = add;
    repeat(&again);
    hw_buffer_free(buffer);
}

/* ---- plans ---- */

static struct {
    uint32_t built, launched, destroyed;
    int32_t answer; /* of both functions */
} plans;

static int32_t count_build(void *queue, uint32_t op, const void *args, void **plan)
{
    (void)queue, (void)args;
    if (plans.answer)
        return plugin_message_set(plans.answer, "no plan today");
    plans.built++;
    *plan = (void *)(uintptr_t)(op + 1);
    return HW_OK;
}

static int32_t launch_plan(void *queue, void *plan, const void *args)
{
    (void)queue, (void)args;
    assert_int_equal((uintptr_t)plan, HW_OP_SILU + 1);
    plans.launched++;
    return plans.answer ? plugin_message_set(plans.answer, "it fell off the bus") : HW_OK;
}

static void count_destroy(void *plan)
{
    assert_int_equal((uintptr_t)plan, HW_OP_SILU + 1);
    plans.destroyed++;
}

static struct hw_silu silu_of(int64_t cols)
{
    return (struct hw_silu){ .x = first_tensor(HW_F32, 2, 3, cols, 0, 0),
                             .y = f32(2, 3, cols, 0, 0) };
}

/* A form has one plan for all addresses, until its call is forgotten or the queue is closed. */
static void plans_live_as_long_as_remembered_calls(void **state)
{
    struct hw_plugin *table = &world.cpu->plugin->table, given = *table;
    struct hw_queue *queue;
    (void)state;
    table->plan_build = count_build;
    table->plan_launch = launch_plan;
    table->plan_destroy = count_destroy;
    ok(hw_queue_open(world.cpu, NULL, &queue));
    for (int i = 0; i <= SEEN_CALLS; i++)
        for (int k = 0; k < 3; k++) {
            struct hw_silu op = silu_of(9 + i);
            op.y.offset = 64 * (uint64_t)k;
            ok(hw_silu(queue, &op));
        }
    assert_int_equal(plans.built, SEEN_CALLS + 1);
    assert_int_equal(plans.launched, 3 * plans.built);
    assert_int_equal(plans.destroyed, 1);
    plans.answer = HW_NO_MEMORY;
    const struct hw_silu op = silu_of(9 + SEEN_CALLS);
    fails(HW_NO_MEMORY, "it fell off the bus", hw_silu(queue, &op));
    hw_queue_close(queue);
    assert_int_equal(plans.destroyed, plans.built);
    *table = given;
}

/* Without a plan, the op's function is called, and nobody hears of it. */
static void a_plugin_may_have_no_plan(void **state)
{
    struct hw_plugin *table = &world.cpu->plugin->table, given = *table;
    struct hw_add add = valid_call(HW_OP_ADD).add;
    struct hw_queue *queue;
    (void)state;
    table->plan_build = count_build;
    table->plan_launch = launch_plan;
    table->plan_destroy = count_destroy;
    plans.launched = 0;
    plans.answer = HW_DRIVER;
    ok(hw_queue_open(world.cpu, NULL, &queue));
    for (int i = 0; i < 3; i++)
        ok(hw_add(queue, &add));
    assert_int_equal(plans.launched, 0);
    hw_queue_close(queue);
    plans.answer = HW_OK;
    *table = given;
}

/* ---- packed weights ---- */

static struct hw_tensor packed_weights(int64_t rows, int64_t cols)
{
    static const float zeros[64];
    struct hw_tensor packed;
    const struct hw_tensor weights = put(world.on_near, zeros, rows, cols);
    ok(hw_tensor_pack(world.on_near, &weights, &packed));
    assert_int_not_equal(packed.layout, 0);
    return packed;
}

static bool near_has_seen(const struct hw_matmul *op)
{
    return seen_on(world.on_near, HW_OP_MATMUL, op);
}

static void packed_weights_are_recognised(void **state)
{
    static const float zeros[64];
    (void)state;
    const struct hw_tensor plain = put(world.on_near, zeros, 4, 8);
    const struct hw_matmul op = { .a = put(world.on_near, zeros, 2, 4),
                                  .b = packed_weights(4, 8),
                                  .c = put(world.on_near, zeros, 2, 8) };
    ok(hw_matmul(world.on_near, &op));
    ok(hw_matmul(world.on_near, &op));
    assert_true(near_has_seen(&op));
    assert_true(is_repeated(world.on_near, HW_OP_MATMUL, &op));
    struct hw_matmul other = op;
    other.b = packed_weights(4, 8);
    other.a = put(world.on_near, zeros, 2, 4);
    assert_true(near_has_seen(&other));
    for (int i = 0; i <= ROUND; i++)
        ok(hw_matmul(world.on_near, i % 2 ? &op : &other));
    /* With another packing, only a part of it, and unpacked. */
    other.b.layout++;
    assert_false(near_has_seen(&other));
    other.b = op.b;
    other.b.offset = 4;
    assert_false(near_has_seen(&other));
    fails(HW_INVALID, "b", hw_matmul(world.on_near, &other));
    other.b.offset = 0;
    other.b.buffer = plain.buffer;
    assert_false(near_has_seen(&other));
    fails(HW_INVALID, "b", hw_matmul(world.on_near, &other));
    other.b.buffer = packed_weights(8, 4).buffer;
    assert_false(near_has_seen(&other));
    fails(HW_INVALID, "b", hw_matmul(world.on_near, &other));
    other.b = op.b;
    other.b.buffer = NULL;
    other.b.data = (void *)(uintptr_t)64;
    world.on_near->host_tensors = true;
    assert_false(near_has_seen(&other));
    world.on_near->host_tensors = false;
    fails(HW_INVALID, "b", hw_matmul(world.on_near, &other));
    /* The output overwrites the weights. */
    other = op;
    other.c.buffer = op.b.buffer;
    assert_false(near_has_seen(&other));
    fails(HW_INVALID, "overlap", hw_matmul(world.on_near, &other));
}

/* ---- the form ---- */

static void other_fields_are_not_recognised(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const size_t operands = op_rows[op].operand_count * sizeof(struct hw_tensor);
        union any_op u = valid_call(op);
        see(op, &u);
        const struct seen_call *call = seen_first(world.on_cpu, op, &u);
        for (size_t i = operands; i < op_rows[op].size; i++) {
            union any_op other = u;
            ((unsigned char *)&other)[i] ^= 1;
            assert_false(is_like(world.on_cpu, call, &other, &op_rows[op]));
        }
    }
}

/* An in-place call was valid once, so it is valid at other addresses, but not with other
 * operands. */
static void in_place_is_recognised_where_it_was_seen(void **state)
{
    (void)state;
    union any_op u = valid_call(HW_OP_ADD);
    see(HW_OP_ADD, &u);
    u.add.y = u.add.a;
    assert_false(seen(HW_OP_ADD, &u));
    see(HW_OP_ADD, &u);
    move(HW_OP_ADD, &u, 4096);
    assert_true(seen(HW_OP_ADD, &u));
    u.add.y = u.add.b;
    assert_false(seen(HW_OP_ADD, &u));
    see(HW_OP_ADD, &u);
    u.add.y = u.add.a;
    assert_true(seen(HW_OP_ADD, &u));
    u.add.y.data = (float *)u.add.y.data + 4;
    assert_false(seen(HW_OP_ADD, &u));
}

/* More shapes than a queue remembers: the latest ones are recognised. (The valid call's shape was
 * remembered much earlier.) */
static void many_shapes_are_recognised(void **state)
{
    union any_op u[2 * SEEN_CALLS];
    (void)state;
    for (int i = 0; i < 2 * SEEN_CALLS; i++) {
        u[i].silu.x = first_tensor(HW_F32, 2, 3, 9 + i, 0, 0);
        u[i].silu.y = f32(2, 3, 9 + i, 0, 0);
        see(HW_OP_SILU, &u[i]);
        for (int k = i > 7 ? i - 7 : 0; k < i; k++)
            assert_true(seen(HW_OP_SILU, &u[k]));
    }
    assert_false(seen(HW_OP_SILU, &u[0]));
}

static uint32_t seed = 1;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static struct hw_buffer *buffers[4]; /* large, read-only, small, of another device */

static void damage(struct hw_tensor *t, const struct hw_tensor *other)
{
    static const int64_t values[] = { -1, 0,  1,  2,  4,         8,         16,
                                      32, 36, 48, 64, INT32_MAX, INT64_MAX, INT64_MIN };
    const int64_t value = values[random_below(sizeof values / sizeof *values)];
    const uint32_t axis = random_below(4);
    switch (random_below(13)) {
    case 0:
        t->extent[axis] = value;
        break;
    case 1:
        t->stride[axis] = value;
        break;
    case 2:
        t->rank = (int32_t)value;
        break;
    case 3:
        t->dtype = (int32_t)random_below(14);
        break;
    case 4:
        t->offset = (uint64_t)value;
        break;
    case 5:
        t->data = other->data;
        break;
    case 6:
        *t = *other;
        break;
    case 7:
        t->reserved[random_below(3)] = random_below(2);
        break;
    case 8:
        t->layout = random_below(2);
        break;
    case 9: /* at the end of memory */
        t->data = (void *)(UINTPTR_MAX - 15);
        break;
    case 10:
        t->data = (void *)((uintptr_t)t->data +
                           random_below(64)); /* perhaps past the end of memory */
        break;
    case 11:
        t->buffer = buffers[random_below(4)];
        t->offset = 4 * (uint64_t)random_below(4096);
        break;
    case 12:
        t->data = NULL;
        break;
    }
}

/* Absent and empty operands, operands in place, and a scalar with any value. */
static void vary(uint32_t op, union any_op *u)
{
    const struct op_row *row = &op_rows[op];
    const struct operand_row *x = &row->operands[random_below(row->operand_count)],
                             *y = &row->operands[random_below(row->operand_count)];
    const size_t operands = row->operand_count * sizeof(struct hw_tensor);
    if (role_optional(x->role) && random_below(2))
        operand_in(u, x)->dtype = HW_NONE;
    if (op == HW_OP_MATMUL && random_below(4) == 0)
        u->matmul.a.extent[1] = u->matmul.b.extent[0] = 0;
    if (random_below(4) == 0)
        operand_in(u, y)->data = operand_in(u, x)->data;
    if (row->size > operands && random_below(4) == 0)
        ((unsigned char *)u)[operands + random_below((uint32_t)(row->size - operands))] ^=
            (unsigned char)(1 << random_below(8));
}

static void quick_look_and_full_check_agree(void **state)
{
    const uint32_t rounds = getenv("HW_TEST_QUICK") ? 40000 : 400000;
    uint32_t accepted = 0, rejected = 0, recognised[HW_OP_COUNT] = { 0 };
    (void)state;
    ok(hw_buffer_alloc(world.cpu, 1 << 16, 0, &buffers[0]));
    ok(hw_buffer_alloc(world.cpu, 1 << 16, HW_BUFFER_READ_ONLY, &buffers[1]));
    ok(hw_buffer_alloc(world.cpu, 64, 0, &buffers[2]));
    ok(hw_buffer_alloc(world.near, 1 << 16, 0, &buffers[3]));
    for (uint32_t round = 0; round < rounds; round++) {
        const uint32_t op = random_below(HW_OP_COUNT);
        const struct op_row *row = &op_rows[op];
        union any_op u = valid_call(op);
        vary(op, &u);
        for (uint32_t n = random_below(4); n > 0; n--)
            damage(operand_in(&u, &row->operands[random_below(row->operand_count)]),
                   operand_at(&u, &row->operands[random_below(row->operand_count)]));
        struct check check = { .device = world.cpu, .op = op };
        const enum hw_status whole = check_call(&u, &check);
        const bool quick = seen(op, &u);
        if (quick && whole)
            fail_msg("%s: recognised, but invalid: %s", hw_op_name(op), hw_message());
        recognised[op] += quick;
        if (op == HW_OP_COPY &&
            (u.copy.src.buffer == buffers[3] || u.copy.dst.buffer == buffers[3]))
            continue; /* between devices: see test_copy.c */
        if (!whole && check.traits & TRAIT_STRIDED)
            continue; /* these need scratch memory: see test_route.c */
        const uint32_t before = plugin_calls;
        const enum hw_status answer = submit(op, &u);
        assert_int_equal(answer, whole);
        assert_int_equal(plugin_calls - before, !whole && !(check.traits & TRAIT_EMPTY));
        accepted += !whole;
        rejected += whole != HW_OK;
        assert_true(whole == HW_OK || whole == HW_INVALID);
    }
    assert_true(accepted > 1000 && rejected > 1000);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (recognised[op] < rounds / 4000)
            fail_msg("%s: recognised %u times", hw_op_name(op), (unsigned)recognised[op]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_calls_are_recognised),
        cmocka_unit_test(repeated_addresses_are_recognised),
        cmocka_unit_test(no_change_is_missed),
        cmocka_unit_test(absent_operands_may_hold_anything),
        cmocka_unit_test(addresses_mean_others_after_a_free),
        cmocka_unit_test(a_freed_buffer_can_be_replaced),
        cmocka_unit_test(buffers_of_other_contexts_are_not_relied_on),
        cmocka_unit_test(lost_devices_are_noticed),
        cmocka_unit_test(forks_are_noticed),
        cmocka_unit_test(recording_looks_at_nothing),
        cmocka_unit_test(addresses_may_change_in_each_call),
        cmocka_unit_test(plans_live_as_long_as_remembered_calls),
        cmocka_unit_test(a_plugin_may_have_no_plan),
        cmocka_unit_test(packed_weights_are_recognised),
        cmocka_unit_test(other_fields_are_not_recognised),
        cmocka_unit_test(in_place_is_recognised_where_it_was_seen),
        cmocka_unit_test(many_shapes_are_recognised),
        cmocka_unit_test(quick_look_and_full_check_agree),
    };
    return cmocka_run_group_tests(tests, calls_begin, calls_end);
}
