/* SPDX-License-Identifier: MIT */
/* test_shadow.c - the judge of HW_SHADOW: the oracle decides where the results of the device and of
 * the CPU plugin differ. */
#include "judge.h"
#include "oracle.h"

#include <build_stamp.h>
#include <hw/hw.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { K = 4096, N = 4 };

static char why[400];

/* The results of the CPU plugin; NULL: it does not compute the op. */
static const void *expected;
/* The results of the device, for the operand that is written. */
static const void *result;

/* All operands are contiguous host tensors. */
static enum hw_status move(struct hw_queue *queue, const struct hw_tensor *dst,
                           const struct hw_tensor *src)
{
    (void)queue;
    memcpy(dst->data, src->data, hw_tensor_bytes(src));
    return HW_OK;
}

static struct hw_tensor *output_of(uint32_t op, void *args)
{
    switch (op) {
    case HW_OP_MATMUL:
        return &((struct hw_matmul *)args)->c;
    case HW_OP_COPY:
        return &((struct hw_copy *)args)->dst;
    default:
        return &((struct hw_attention *)args)->y;
    }
}

static enum hw_status compute(struct hw_queue *queue, uint32_t op, const void *args)
{
    union op_args copy;
    (void)queue;
    memcpy(&copy, args, op_args_size(op));
    const struct hw_tensor *y = output_of(op, &copy);
    if (expected)
        memcpy(y->data, expected, hw_tensor_bytes(y));
    return expected ? HW_OK : HW_UNSUPPORTED;
}

/* The device writes `result`. */
static int32_t judge(uint32_t op, void *args)
{
    const struct shadow_call call = {
        .op = op, .args = args, .move = move, .compute = compute
    };
    struct shadow_judge steps;
    assert_int_equal(hw_shadow_entry(HW_BUILD_STAMP, &steps), HW_OK);
    struct shadow_copies *copies = steps.begin(&call);
    const struct hw_tensor *y = output_of(op, args);
    why[0] = '\0';
    assert_non_null(copies);
    memcpy(y->data, result, hw_tensor_bytes(y));
    const enum shadow_verdict verdict = steps.judge(copies, why, sizeof why);
    if (verdict == SHADOW_WRONG) {
        assert_int_equal(steps.correct(copies), HW_OK);
        assert_memory_equal(y->data, expected, hw_tensor_bytes(y));
    }
    steps.end(copies);
    return (int32_t)verdict;
}

/* A product of vectors with K terms. */
struct product {
    float a[K], b[K * N], c[N], expected[N], got[N];
    struct hw_matmul op;
};

static struct product *product_make(void)
{
    struct product *p = calloc(1, sizeof *p);
    assert_non_null(p);
    for (int k = 0; k < K; k++)
        p->a[k] = (float)(k % 13) - 6;
    for (int i = 0; i < K * N; i++)
        p->b[i] = (float)(i % 7) - 2.5f;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            p->expected[n] += p->a[k] * p->b[k * N + n];
    memcpy(p->got, p->expected, sizeof p->got);
    p->op.a = hw_host_2d(p->a, HW_F32, 1, K);
    p->op.b = hw_host_2d(p->b, HW_F32, K, N);
    p->op.c = hw_host_2d(p->c, HW_F32, 1, N);
    return p;
}

static int32_t product_judge(struct product *p)
{
    expected = p->expected;
    result = p->got;
    return judge(HW_OP_MATMUL, &p->op);
}

/* An error of a percent is found, also among thousands of terms. */
static void test_sums(void **state)
{
    struct product *p = product_make();
    (void)state;
    assert_int_equal(product_judge(p), SHADOW_RIGHT);
    p->got[2] *= 1.0000005f;
    assert_int_equal(product_judge(p), SHADOW_RIGHT);
    p->got[2] = p->expected[2] * 1.01f + 1;
    assert_int_equal(product_judge(p), SHADOW_WRONG);
    assert_non_null(strstr(why, "with a f32 [1, 4096], b f32 [4096, 4], c f32 [1, 4], "
                                "c[0,2] is "));
    assert_non_null(strstr(why, " (HW_SHADOW)"));
    p->got[2] = NAN;
    assert_int_equal(product_judge(p), SHADOW_WRONG);
    free(p);
}

/* The reference may be wrong itself. */
static void test_wrong_reference(void **state)
{
    struct product *p = product_make();
    (void)state;
    p->expected[1] += 100;
    assert_int_equal(product_judge(p), SHADOW_RIGHT);
    p->got[0] += 100;
    assert_int_equal(product_judge(p), SHADOW_WRONG);
    free(p);
}

/* Without the CPU plugin's result there is no verdict, and no copy of a packed operand. */
static void test_unknown(void **state)
{
    struct product *p = product_make();
    struct shadow_judge steps;
    const struct shadow_call call = { .op = HW_OP_MATMUL, .args = &p->op, .move = move };
    (void)state;
    expected = NULL;
    result = p->got;
    assert_int_equal(judge(HW_OP_MATMUL, &p->op), SHADOW_UNKNOWN);
    assert_int_equal(hw_shadow_entry(HW_BUILD_STAMP, &steps), HW_OK);
    p->op.b.layout = 1;
    assert_null(steps.begin(&call));
    p->op.b.layout = 0;
    p->op.b.extent[0] = p->op.b.extent[1] = INT64_MAX / 2;
    assert_null(steps.begin(&call));
    free(p);
}

/* Moved data must be the same in all bits. */
static void test_moved_data(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    float y[4], got[4] = { 1, 2, 3, 4 };
    struct hw_copy op = { .src = hw_host_1d(x, HW_F32, 4),
                          .dst = hw_host_1d(y, HW_F32, 4) };
    (void)state;
    expected = x;
    result = got;
    assert_int_equal(judge(HW_OP_COPY, &op), SHADOW_RIGHT);
    got[3] = 4.000001f;
    assert_int_equal(judge(HW_OP_COPY, &op), SHADOW_WRONG);
    assert_non_null(strstr(why, "dst[3] is 4.00000095, should be exactly 4"));
}

/* Attention over keys that hold NaN may return NaN, and no other op may. */
static void test_wild(void **state)
{
    const float q[2] = { 1, 2 }, v[4] = { 1, 2, 3, 4 };
    const float k[4] = { 1, 2, NAN, NAN };
    float y[2], right[2] = { 1, 2 }, got[2] = { 1, 2 };
    struct hw_attention op = { .q = hw_host_4d(q, HW_F32, 1, 1, 1, 2),
                               .k = hw_host_4d(k, HW_F32, 1, 2, 1, 2),
                               .v = hw_host_4d(v, HW_F32, 1, 2, 1, 2),
                               .y = hw_host_4d(y, HW_F32, 1, 1, 1, 2),
                               .length = 1 };
    (void)state;
    expected = right;
    result = got;
    assert_int_equal(judge(HW_OP_ATTENTION, &op), SHADOW_RIGHT);
    got[0] = NAN;
    assert_int_equal(judge(HW_OP_ATTENTION, &op), SHADOW_RIGHT);
    got[0] = 3;
    assert_int_equal(judge(HW_OP_ATTENTION, &op), SHADOW_WRONG);
}

static void test_stamp(void **state)
{
    struct shadow_judge steps;
    (void)state;
    assert_int_equal(hw_shadow_entry("another build", &steps), HW_ABI);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),    cmocka_unit_test(test_wrong_reference),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_moved_data),
        cmocka_unit_test(test_wild),    cmocka_unit_test(test_stamp)
    };
    return cmocka_run_group_tests_name("verify shadow", tests, NULL, NULL);
}
