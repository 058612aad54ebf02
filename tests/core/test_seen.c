/* SPDX-License-Identifier: MIT */
/* test_seen.c - the quick look at calls like earlier ones (run/seen.h): it must recognise
 * them, and never accept what the full check rejects. */
#include "calls.h"

#include "run/check.h"
#include "run/queue.h"
#include "run/seen.h"

static bool seen(uint32_t op, const union any_op *args)
{
    return seen_before(world.on_cpu, 0, op, args, op_rows[op].size) ||
           seen_before(world.on_cpu, 1, op, args, op_rows[op].size);
}

/* Submits the call, which the quick look must recognise from then on. */
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
        /* Without what may be absent, beside the call with everything. */
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++)
            if (role_optional(op_rows[op].operands[i].role) && !is_gated(op))
                memset(operand_in(&other, &op_rows[op].operands[i]), 0,
                       sizeof(struct hw_tensor));
        see(op, &other);
        assert_true(seen(op, &u));
    }
}

static void other_fields_are_not_recognised(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const size_t operands = op_rows[op].operand_count * sizeof(struct hw_tensor);
        union any_op u = valid_call(op);
        see(op, &u);
        for (size_t i = operands; i < op_rows[op].size; i++) {
            union any_op other = u;
            ((unsigned char *)&other)[i] ^= 1;
            assert_false(seen(op, &other));
        }
    }
}

/* In place was right once, so it is right on other addresses; but not with other operands. */
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

/* More shapes than a queue remembers: the latest ones are recognised. (The valid call's was
 * remembered long ago.) */
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
        struct check check = { .device = world.cpu, .impl = world.cpu->impl, .op = op };
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
        cmocka_unit_test(other_fields_are_not_recognised),
        cmocka_unit_test(in_place_is_recognised_where_it_was_seen),
        cmocka_unit_test(many_shapes_are_recognised),
        cmocka_unit_test(quick_look_and_full_check_agree),
    };
    return cmocka_run_group_tests(tests, calls_begin, calls_end);
}
