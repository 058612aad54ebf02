/* SPDX-License-Identifier: MIT */
/* test_tensor.c - constructors and views of tensors: what they return, and that an
 * invalid call returns an absent tensor. */
#include "world.h"

static float data[64];

static void constructors(void **state)
{
    const int64_t extents[] = { 2, 3, 4 };
    struct hw_tensor t;
    (void)state;
    ok(hw_tensor_host(&t, data, HW_F32, 3, extents));
    assert_int_equal(t.stride[0], 48);
    assert_int_equal(t.stride[1], 16);
    assert_int_equal(t.stride[2], 4);
    assert_int_equal(t.extent[3] | t.stride[3], 0);
    assert_int_equal(hw_tensor_bytes(&t), 96);
    ok(hw_tensor_host(&t, data, HW_Q8_0, 1, &(int64_t){ 64 }));
    assert_int_equal(t.stride[0], 34);
    assert_int_equal(hw_tensor_bytes(&t), 68);
    ok(hw_tensor_host(&t, NULL, HW_F32, 1, &(int64_t){ 0 }));
    assert_int_equal(hw_tensor_bytes(&t), 0);
    assert_int_equal(hw_tensor_bytes(NULL), 0);
}

static void rejected_constructors(void **state)
{
    const int64_t huge[] = { INT64_MAX, INT64_MAX }, four[] = { 4, 4, 4, 4, 4 },
                  bad[] = { 4, -1 };
    struct hw_tensor t;
    (void)state;
#define REFUSED(words, ...)                                                                \
    do {                                                                                   \
        memset(&t, 0xff, sizeof t);                                                        \
        fails(HW_INVALID, words, hw_tensor_host(&t, __VA_ARGS__));                         \
        assert_int_equal(t.dtype, HW_NONE);                                                \
    } while (0)
    REFUSED("not a dtype", data, 99, 1, four);
    REFUSED("not a dtype", data, HW_NONE, 1, four);
    REFUSED("rank is 0", data, HW_F32, 0, four);
    REFUSED("rank is 5", data, HW_F32, 5, four);
    REFUSED("extents[1] is -1", data, HW_F32, 2, bad);
    REFUSED("2^63", data, HW_F32, 2, huge);
    REFUSED("extents", data, HW_F32, 2, NULL);
    REFUSED("data", NULL, HW_F32, 2, four);
    REFUSED("aligned", (char *)data + 2, HW_F32, 2, four);
    REFUSED("block", data, HW_Q4_0, 2, four);
    fails(HW_INVALID, "NULL", hw_tensor_host(NULL, data, HW_F32, 1, four));
    assert_int_equal(hw_host_1d(data, 99, 4).rank, -1);
}

static void slices(void **state)
{
    struct hw_tensor t = host_f32(data, (int64_t)4, (int64_t)6, END), s, q;
    (void)state;
    ok(hw_tensor_slice(&s, &t, 1, 2, 5));
    assert_int_equal(s.offset, 8);
    assert_int_equal(s.extent[1], 3);
    assert_int_equal(s.stride[0], 24);
    assert_int_equal(hw_tensor_bytes(&s), 3 * 24 + 12);
    ok(hw_tensor_slice(&s, &s, 0, 3, 3)); /* in place, and empty */
    assert_int_equal(hw_tensor_bytes(&s), 0);
    fails(HW_INVALID, "extent[1]", hw_tensor_slice(&s, &t, 1, 2, 7));
    fails(HW_INVALID, "extent[1]", hw_tensor_slice(&s, &t, 1, 3, 2));
    fails(HW_INVALID, "extent[1]", hw_tensor_slice(&s, &t, 1, -1, 2));
    fails(HW_INVALID, "axis is 2", hw_tensor_slice(&s, &t, 2, 0, 1));
    ok(hw_tensor_host(&q, data, HW_Q8_0, 1, &(int64_t){ 64 }));
    ok(hw_tensor_slice(&s, &q, 0, 32, 64));
    assert_int_equal(s.offset, 34);
    fails(HW_INVALID, "block", hw_tensor_slice(&s, &q, 0, 16, 32));
}

static void transposed_and_reshaped(void **state)
{
    const int64_t six_four[] = { 6, 4 }, five[] = { 5, 5 };
    struct hw_tensor t = host_f32(data, (int64_t)4, (int64_t)6, END), s, q;
    (void)state;
    ok(hw_tensor_transpose(&s, &t, 0, 1));
    assert_int_equal(s.extent[0], 6);
    assert_int_equal(s.stride[0], 4);
    assert_int_equal(s.stride[1], 24);
    fails(HW_INVALID, "contiguous", hw_tensor_reshape(&q, &s, 2, six_four));
    ok(hw_tensor_reshape(&q, &t, 2, six_four));
    assert_int_equal(q.stride[0], 16);
    fails(HW_INVALID, "numbers of elements", hw_tensor_reshape(&q, &t, 2, five));
    fails(HW_INVALID, "axis is -1", hw_tensor_transpose(&s, &t, -1, 0));
    ok(hw_tensor_host(&q, data, HW_Q8_0, 2, (int64_t[]){ 2, 32 }));
    fails(HW_INVALID, "q8_0", hw_tensor_transpose(&s, &q, 0, 1));
    t.stride[0] = -8;
    fails(HW_INVALID, "stride[0]", hw_tensor_slice(&s, &t, 0, 0, 1));
}

/* The result equals the one from the constructor that takes a list of extents. */
static void by_value(void **state)
{
    static const int64_t extents[] = { 2, 3, 2, 4 };
    struct world w;
    struct hw_tensor t;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_buffer_alloc(w.near, 256, 0, &b));
    for (int32_t rank = 1; rank <= 4; rank++) {
        const int64_t *e = extents + 4 - rank;
        const struct hw_tensor hosts[] = { hw_host_1d(data, HW_F32, 4),
                                           hw_host_2d(data, HW_F32, 2, 4),
                                           hw_host_3d(data, HW_F32, 3, 2, 4),
                                           hw_host_4d(data, HW_F32, 2, 3, 2, 4) },
                               views[] = { hw_view_1d(b, 64, HW_F32, 4),
                                           hw_view_2d(b, 64, HW_F32, 2, 4),
                                           hw_view_3d(b, 64, HW_F32, 3, 2, 4),
                                           hw_view_4d(b, 64, HW_F32, 2, 3, 2, 4) };
        ok(hw_tensor_host(&t, data, HW_F32, rank, e));
        assert_memory_equal(&t, &hosts[rank - 1], sizeof t);
        ok(hw_tensor_view(&t, b, 64, HW_F32, rank, e));
        assert_memory_equal(&t, &views[rank - 1], sizeof t);
    }
    const struct hw_tensor long_one = hw_view_2d(b, 64, HW_F32, 7, 7);
    assert_int_equal(long_one.rank, -1);
    fails(HW_INVALID, "exceed its buffer of 256 bytes",
          hw_silu(w.on_near, &(struct hw_silu){ .x = hw_view_2d(b, 64, HW_F32, 7, 7),
                                                .y = hw_view_2d(b, 0, HW_F32, 2, 2) }));
    world_close(&w);
}

static void views_of_buffers(void **state)
{
    struct world w;
    struct hw_tensor t;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_buffer_alloc(w.near, 64, 0, &b));
    ok(hw_tensor_view(&t, b, 32, HW_F32, 1, &(int64_t){ 8 }));
    fails(HW_INVALID, "64 bytes", hw_tensor_view(&t, b, 36, HW_F32, 1, &(int64_t){ 8 }));
    assert_int_equal(t.dtype, HW_NONE);
    fails(HW_INVALID, "exceed its buffer",
          hw_tensor_view(&t, b, UINT64_MAX - 15, HW_F32, 1, &(int64_t){ 8 }));
    fails(HW_INVALID, "aligned", hw_tensor_view(&t, b, 2, HW_F32, 1, &(int64_t){ 8 }));
    fails(HW_INVALID, "NULL", hw_tensor_view(&t, NULL, 0, HW_F32, 1, &(int64_t){ 8 }));
    world_close(&w);
}

/* hw_tensor_alloc() rejects what the other constructors reject. */
static void allocated(void **state)
{
    struct world w;
    struct hw_tensor t;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_tensor_alloc(w.near, 0, HW_Q8_0, 1, &(int64_t){ 64 }, &t));
    hw_buffer_free(t.buffer);
    fails(HW_INVALID, "extent[0] is 33",
          hw_tensor_alloc(w.near, 0, HW_Q8_0, 1, &(int64_t){ 33 }, &t));
    assert_int_equal(t.dtype, HW_NONE);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructors),     cmocka_unit_test(rejected_constructors),
        cmocka_unit_test(slices),           cmocka_unit_test(transposed_and_reshaped),
        cmocka_unit_test(views_of_buffers), cmocka_unit_test(allocated),
        cmocka_unit_test(by_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
