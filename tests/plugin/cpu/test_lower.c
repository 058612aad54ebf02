/* SPDX-License-Identifier: MIT */
/* Lowering: the arguments made from shapes and strides, in cases that are easy to get wrong. */
#include "common/lower.h"

#include "harness.h"

static float x[4096], y[4096];
static unsigned char blocks[4096];

static struct lowered low(uint32_t op, const void *args)
{
    struct lowered l;
    const char *why = lower(op, args, &l);
    if (why)
        fail_msg("%s", why);
    return l;
}

/* A contiguous tensor is one row, cut into spans. */
static void contiguous_is_one_row(void **state)
{
    const struct hw_silu op = { .x = TENSOR(x, HW_F32, 2, 3, 5, 1000),
                                .y = TENSOR(y, HW_F32, 2, 3, 5, 1000) };
    (void)state;
    const struct lowered l = low(HW_OP_SILU, &op);
    assert_int_equal(l.args.silu.cols, 30000);
    assert_int_equal(l.args.silu.n1 * l.args.silu.n2, 1);
    assert_int_equal(l.groups, (30000 + ELEMENT_SPAN - 1) / ELEMENT_SPAN);
}

/* Rows with gaps merge with each other, but not into a single row. */
static void strided_rows_merge_outside(void **state)
{
    struct hw_silu op = { .x = TENSOR(x, HW_F32, 2, 3, 5, 7),
                          .y = TENSOR(y, HW_F32, 2, 3, 5, 7) };
    (void)state;
    op.x.stride[2] = 8 * 4;
    op.x.stride[1] = 5 * 8 * 4;
    op.x.stride[0] = 3 * 5 * 8 * 4;
    const struct lowered l = low(HW_OP_SILU, &op);
    assert_int_equal(l.args.silu.cols, 7);
    assert_int_equal(l.groups, 30);
    assert_int_equal(l.args.silu.n2, 30);
    assert_int_equal(l.args.silu.x.stride[2], 32);
    assert_int_equal(l.args.silu.y.stride[2], 28);
}

/* An operand that repeats along a row becomes b, in either position. Extents of 1 get stride 0. */
static void broadcasts(void **state)
{
    const struct hw_add op = { .a = TENSOR(x, HW_F32, 5, 1),
                               .b = TENSOR(y, HW_F32, 4, 1, 6),
                               .y = TENSOR(y, HW_F32, 4, 5, 6) };
    (void)state;
    const struct lowered l = low(HW_OP_ADD, &op);
    assert_ptr_equal(l.operand[1], &op.b);
    assert_ptr_equal(l.operand[2], &op.a);
    assert_int_equal(l.args.add.b_step, 0);
    assert_int_equal(l.args.add.a.stride[1], 24);
    assert_int_equal(l.args.add.a.stride[2], 0);
    assert_int_equal(l.args.add.b.stride[1], 0);
    assert_int_equal(l.args.add.b.stride[2], 4);
    assert_int_equal(l.args.add.cols, 6);
    assert_int_equal(l.groups, 20);
}

/* After extents of 1 are dropped, the remaining extents may have gaps or repeat. */
static void columns_of_one(void **state)
{
    struct hw_silu silu = { .x = TENSOR(x, HW_F32, 4, 1), .y = TENSOR(y, HW_F32, 4, 1) };
    struct hw_add add = { .a = TENSOR(x, HW_F32, 1, 1),
                          .b = TENSOR(x, HW_F32, 4, 1),
                          .y = TENSOR(y, HW_F32, 4, 1) };
    struct hw_copy copy = { .src = TENSOR(x, HW_F32, 4, 32),
                            .dst = TENSOR(blocks, HW_Q8_0, 4, 32) };
    (void)state;
    silu.x.stride[0] = 32;
    assert_int_equal(low(HW_OP_SILU, &silu).args.silu.cols, 1);
    assert_int_equal(low(HW_OP_SILU, &silu).groups, 4);
    const struct lowered l = low(HW_OP_ADD, &add);
    assert_ptr_equal(l.operand[2], &add.a);
    assert_int_equal(l.args.add.b_step, 0);
    assert_int_equal(l.args.add.cols, 4);
    add.y.stride[0] = 8;
    assert_int_equal(low(HW_OP_ADD, &add).args.add.cols, 1);
    copy.dst.stride[0] = 68;
    assert_int_equal(low(HW_OP_COPY, &copy).args.copy.cols, 32);
    assert_int_equal(low(HW_OP_COPY, &copy).args.copy.dst.stride[2], 68);
    assert_int_equal(low(HW_OP_COPY, &copy).args.copy.src.stride[2], 128);
}

/* Four extents that do not merge; both inputs repeat along a row. */
static void both_repeat(void **state)
{
    const struct hw_mul op = { .a = TENSOR(x, HW_F32, 5, 1),
                               .b = TENSOR(y, HW_F32, 2, 1, 5, 1),
                               .y = TENSOR(y, HW_F32, 2, 3, 5, 33) };
    (void)state;
    const struct lowered l = low(HW_OP_MUL, &op);
    assert_int_equal(l.kernel, PORTABLE_binary);
    assert_int_equal(l.form, FORM_mixed);
    assert_int_equal(l.args.binary.kind, BINARY_MUL);
    assert_int_equal(l.args.binary.a_period.cols, 1);
    assert_int_equal(l.args.binary.b_period.cols, 1);
    assert_int_equal(l.groups, 30);
}

/* A difference keeps the order of its operands. */
static void order_matters(void **state)
{
    struct hw_sub op = { .a = TENSOR(x, HW_F32, 4, 6),
                         .b = TENSOR(y, HW_F32, 4, 1),
                         .y = TENSOR(y, HW_F32, 4, 6) };
    (void)state;
    struct lowered l = low(HW_OP_SUB, &op);
    assert_int_equal(l.kernel, PORTABLE_sub);
    assert_int_equal(l.args.sub.b_step, 0);
    op.a = TENSOR(x, HW_F32, 4, 1);
    op.b = TENSOR(y, HW_F32, 4, 6);
    l = low(HW_OP_SUB, &op);
    assert_int_equal(l.kernel, PORTABLE_binary);
    assert_ptr_equal(l.operand[1], &op.a);
    assert_int_equal(l.args.binary.a_period.cols, 1);
    assert_int_equal(l.args.binary.b_period.cols, 6);
}

/* Contiguous operands of two types are one row. */
static void types_mix(void **state)
{
    const struct hw_div op = { .a = TENSOR(x, HW_F32, 4, 5, 6),
                               .b = TENSOR(y, HW_F16, 4, 5, 6),
                               .y = TENSOR(y, HW_BF16, 4, 5, 6) };
    (void)state;
    const struct lowered l = low(HW_OP_DIV, &op);
    assert_int_equal(l.kernel, PORTABLE_binary);
    assert_int_equal(l.args.binary.cols, 120);
    assert_int_equal(l.args.binary.y_type, STORAGE_BF16);
    assert_int_equal(l.args.binary.a_type, STORAGE_F32);
    assert_int_equal(l.args.binary.b_type, STORAGE_F16);
    assert_int_equal(l.groups, 1);
}

static void extents_repeat(void **state)
{
    const struct hw_add op = { .a = TENSOR(x, HW_F32, 4, 6, 10),
                               .b = TENSOR(y, HW_F32, 3, 5),
                               .y = TENSOR(y, HW_F32, 4, 6, 10) };
    (void)state;
    const struct lowered l = low(HW_OP_ADD, &op);
    assert_int_equal(l.kernel, PORTABLE_binary);
    assert_int_equal(l.args.binary.cols, 10);
    assert_int_equal(l.args.binary.b_period.outer[1], 1);
    assert_int_equal(l.args.binary.b_period.outer[2], 3);
    assert_int_equal(l.args.binary.b_period.cols, 5);
    assert_int_equal(l.args.binary.b.stride[2], 20);
    assert_int_equal(l.groups, 24);
}

static void empty_launches_nothing(void **state)
{
    struct hw_silu op = { .x = TENSOR(x, HW_F32, 2, 3), .y = TENSOR(y, HW_F32, 2, 3) };
    struct hw_matmul mm = { .a = TENSOR(x, HW_F32, 2, 3),
                            .b = TENSOR(x, HW_F32, 3, 4),
                            .c = TENSOR(y, HW_F32, 2, 4) };
    (void)state;
    op.x.extent[0] = op.y.extent[0] = 0;
    assert_int_equal(low(HW_OP_SILU, &op).groups, 0);
    mm.a.extent[1] = mm.b.extent[0] = 0; /* an empty sum is zero: still to be written */
    assert_int_equal(low(HW_OP_MATMUL, &mm).groups, 1);
    mm.c.extent[0] = mm.a.extent[0] = 0;
    assert_int_equal(low(HW_OP_MATMUL, &mm).groups, 0);
}

static void few_rows_take_the_dot_product(void **state)
{
    struct hw_matmul op = { .a = TENSOR(x, HW_F32, 8, 64),
                            .b = TENSOR(blocks, HW_Q8_0, 20, 64),
                            .c = TENSOR(y, HW_F32, 8, 20),
                            .transpose_b = 1 };
    struct lowered l;
    (void)state;
    l = low(HW_OP_MATMUL, &op);
    assert_int_equal(l.kernel, PORTABLE_matmul_vec);
    assert_int_equal(l.args.matmul.b.stride[2], 68);
    assert_null(l.operand[3]);
    op.transpose_b = 0;
    assert_non_null(lower(HW_OP_MATMUL, &op, &l));
}

/* Offsets count from the start of the allocation that contains the buffer. */
static void offsets_of_buffers(void **state)
{
    struct hw_buffer buffer = { .host = x, .offset = 256, .bytes = 64 };
    struct hw_silu op = { .x = TENSOR(NULL, HW_F32, 4), .y = TENSOR(y, HW_F32, 4) };
    (void)state;
    op.x.buffer = &buffer;
    op.x.offset = 16;
    const struct lowered l = low(HW_OP_SILU, &op);
    assert_int_equal(l.args.silu.x.offset, 272);
    assert_ptr_equal(l.operand[1], &op.x);
}

static void copies(void **state)
{
    struct hw_copy op = { .src = TENSOR(blocks, HW_Q4_0, 3, 64),
                          .dst = TENSOR(y, HW_F32, 3, 64) };
    struct lowered l;
    (void)state;
    l = low(HW_OP_COPY, &op);
    assert_int_equal(l.args.copy.cols, 192);
    assert_int_equal(l.args.copy.src_type, STORAGE_Q4_0);
    op.dst = TENSOR(y, HW_Q4_0, 3, 64);
    l = low(HW_OP_COPY, &op);
    assert_int_equal(l.args.copy.cols, 3 * 36);
    assert_int_equal(l.args.copy.src_type, STORAGE_I8);
    op.src = TENSOR(blocks, HW_Q6_K, 2, 512); /* bits move, whatever they mean */
    op.dst = TENSOR(y, HW_Q6_K, 2, 512);
    assert_int_equal(low(HW_OP_COPY, &op).args.copy.cols, 2 * 2 * 210);
    op.dst = TENSOR(y, HW_F32, 2, 512);
    assert_int_equal(low(HW_OP_COPY, &op).args.copy.cols, 1024);
    op.dst = TENSOR(y, HW_Q4_K, 2, 512);
    assert_non_null(lower(HW_OP_COPY, &op, &l));
    op.src = TENSOR(x, HW_F32, 4, 5); /* a transposed view becomes contiguous */
    op.dst = TENSOR(y, HW_F32, 4, 5);
    op.src.stride[0] = 4;
    op.src.stride[1] = 16;
    l = low(HW_OP_COPY, &op);
    assert_int_equal(l.args.copy.src_step, 16);
    assert_int_equal(l.args.copy.dst_step, 4);
    assert_int_equal(l.args.copy.cols, 5);
    assert_int_equal(l.args.copy.src_type, STORAGE_I32);
}

static void refuses_to_convert(const struct hw_copy *op)
{
    struct lowered l;
    const char *why = lower(HW_OP_COPY, op, &l);
    assert_non_null(why);
    assert_string_equal(why,
                        "the innermost extents must be contiguous to convert a block type");
}

/* Kernels that convert to blocks take no stride between floats. */
static void strided_floats_become_no_blocks(void **state)
{
    struct hw_tensor floats = TENSOR(x, HW_F32, 3, 64);
    const struct hw_tensor packed = TENSOR(blocks, HW_Q8_0, 3, 64);
    (void)state;
    low(HW_OP_COPY, &(struct hw_copy){ .src = floats, .dst = packed });
    floats.stride[1] = 8;
    floats.stride[0] = 512;
    refuses_to_convert(&(struct hw_copy){ .src = floats, .dst = packed });
    refuses_to_convert(&(struct hw_copy){ .src = packed, .dst = floats });
}

static void packed_swiglu(void **state)
{
    const struct hw_swiglu op = { .gate = TENSOR(x, HW_F32, 3, 10),
                                  .y = TENSOR(y, HW_F32, 3, 5) };
    (void)state;
    const struct lowered l = low(HW_OP_SWIGLU, &op);
    assert_ptr_equal(l.operand[2], &op.gate);
    assert_int_equal(l.args.swiglu.up.offset, 20);
    assert_int_equal(l.args.swiglu.gate.stride[2], 40);
    assert_int_equal(l.args.swiglu.cols, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_is_one_row),
        cmocka_unit_test(strided_rows_merge_outside),
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(columns_of_one),
        cmocka_unit_test(both_repeat),
        cmocka_unit_test(order_matters),
        cmocka_unit_test(types_mix),
        cmocka_unit_test(extents_repeat),
        cmocka_unit_test(empty_launches_nothing),
        cmocka_unit_test(few_rows_take_the_dot_product),
        cmocka_unit_test(offsets_of_buffers),
        cmocka_unit_test(copies),
        cmocka_unit_test(strided_floats_become_no_blocks),
        cmocka_unit_test(packed_swiglu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
