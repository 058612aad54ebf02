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

static int32_t judge(struct shadow_call call)
{
    call.stamp = HW_BUILD_STAMP;
    why[0] = '\0';
    return hw_shadow_judge(&call, why, sizeof why);
}

/* A product of vectors with K terms. */
struct product {
    float a[K], b[K * N], expected[N], got[N];
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
    p->op.c = hw_host_2d(p->got, HW_F32, 1, N);
    return p;
}

static int32_t product_judge(struct product *p)
{
    return judge((struct shadow_call){ .op = HW_OP_MATMUL,
                                       .args = &p->op,
                                       .before = { p->a, p->b },
                                       .after = { [operand_matmul_c] = p->got },
                                       .expected = { [operand_matmul_c] = p->expected } });
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
    assert_non_null(strstr(why, "c[0,2] is "));
    p->got[2] = NAN;
    assert_int_equal(product_judge(p), SHADOW_WRONG);
    free(p);
}

/* The reference may be wrong itself, or missing. */
static void test_wrong_reference(void **state)
{
    struct product *p = product_make();
    (void)state;
    p->expected[1] += 100;
    assert_int_equal(product_judge(p), SHADOW_RIGHT);
    const struct shadow_call call = { .op = HW_OP_MATMUL,
                                      .args = &p->op,
                                      .before = { p->a, p->b },
                                      .after = { [operand_matmul_c] = p->got } };
    assert_int_equal(judge(call), SHADOW_RIGHT);
    p->got[0] += 100;
    assert_int_equal(judge(call), SHADOW_WRONG);
    free(p);
}

/* Moved data must be the same in all bits. */
static void test_moved_data(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    float y[4] = { 1, 2, 3, 4 };
    const struct hw_copy op = { .src = hw_host_1d(x, HW_F32, 4),
                                .dst = hw_host_1d(y, HW_F32, 4) };
    const struct shadow_call call = { .op = HW_OP_COPY,
                                      .args = &op,
                                      .before = { x },
                                      .after = { [1] = y },
                                      .expected = { [1] = x } };
    (void)state;
    assert_int_equal(judge(call), SHADOW_RIGHT);
    y[operand_matmul_c] = 4.000001f;
    assert_int_equal(judge(call), SHADOW_WRONG);
    assert_string_equal(why, "dst[3] is 4.00000095, should be exactly 4");
}

/* Attention over keys that hold NaN may return NaN, and no other op may. */
static void test_wild(void **state)
{
    const float q[2] = { 1, 2 }, v[4] = { 1, 2, 3, 4 };
    const float k[4] = { 1, 2, NAN, NAN };
    float y[2] = { 1, 2 };
    const struct hw_attention op = { .q = hw_host_4d(q, HW_F32, 1, 1, 1, 2),
                                     .k = hw_host_4d(k, HW_F32, 1, 2, 1, 2),
                                     .v = hw_host_4d(v, HW_F32, 1, 2, 1, 2),
                                     .y = hw_host_4d(y, HW_F32, 1, 1, 1, 2),
                                     .length = 1 };
    const struct shadow_call call = { .op = HW_OP_ATTENTION,
                                      .args = &op,
                                      .before = { q, k, v },
                                      .after = { [operand_attention_y] = y } };
    (void)state;
    assert_int_equal(judge(call), SHADOW_RIGHT);
    y[0] = NAN;
    assert_int_equal(judge(call), SHADOW_RIGHT);
    y[0] = 3;
    assert_int_equal(judge(call), SHADOW_WRONG);
}

static void test_stamp(void **state)
{
    const struct shadow_call call = { .stamp = "another build", .op = HW_OP_COUNT };
    (void)state;
    assert_int_equal(hw_shadow_judge(&call, why, sizeof why), SHADOW_UNKNOWN);
    assert_int_equal(judge((struct shadow_call){ .op = HW_OP_COUNT }), SHADOW_RIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums),
                                        cmocka_unit_test(test_wrong_reference),
                                        cmocka_unit_test(test_moved_data),
                                        cmocka_unit_test(test_wild),
                                        cmocka_unit_test(test_stamp) };
    return cmocka_run_group_tests_name("verify shadow", tests, NULL, NULL);
}
