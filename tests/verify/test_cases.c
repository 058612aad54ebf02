/* SPDX-License-Identifier: MIT */
/* test_cases.c - the cases of the admission test: a faulty case would be blamed on a plugin, and an
 * op without cases would never be tested. A lack of memory must not be blamed on a plugin either:
 * the linker puts the functions below in front of the system's (--wrap). */
#include "bench.h"
#include "problem.h"
#include "verify.h"

#include <hw/report.h>

#include <hw/plugin.h> /* struct hw_buffer */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Makes the n-th allocation from here fail; 0: none. */
static unsigned left;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return left && !--left ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return left && !--left ? NULL : __real_calloc(count, size);
}

static bool met[HW_OP_COUNT][HW_DTYPE_END];

static bool take(void *user, const struct test_case *test)
{
    struct problem problem;
    uint64_t *most = user;
    if (!problem_make(&problem, test, DETAIL_SHAPES))
        fail_msg("%s: %s", test->text, problem.error);
    assert_false(problem_is_empty(&problem));
    for (int i = 0; i < problem.count; i++)
        met[test->op][problem.operand[i].dtype] = true;
    *most = problem.bytes > *most ? problem.bytes : *most;
    problem_clear(&problem);
    return true;
}

static void test_admission(void **state)
{
    uint64_t most = 0;
    (void)state;
    case_each(1u << CASE_ADMISSION, take, &most);
    assert_true(most < 32 << 10);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (!met[op][HW_F32] || !met[op][HW_F16] || !met[op][HW_BF16])
            fail_msg("%s has no case with f32, with f16 or with bf16", hw_op_name(op));
}

/* When ops are measured as a graph, operands that no op writes are in a read-only buffer, like a
 * model's weights: kernels may read them early. */
static void test_constants(void **state)
{
    static const char *const texts[] = {
        "matmul(m=1,n=3,k=4,a=f32,b=bf16,c=f32,tb=1)",
        "rmsnorm(type=f32,weight=f32,shape=2x4)",
        "add_rmsnorm(type=f32,weight=f32,shape=2x4)",
    };
    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct hw_buffer arena = { 0 }, constants = { 0 };
        char error[VERIFY_ERROR_TEXT];
        struct problem problem;
        struct test_case test;
        if (!case_parse(texts[t], &test, error, sizeof error) ||
            !problem_make(&problem, &test, DETAIL_SHAPES))
            fail_msg("%s", texts[t]);
        const struct bench bench = { .problem = &problem,
                                     .buffer = &arena,
                                     .constants = &constants };
        const union op_args args = bench_args(&bench);
        for (int i = 0; i < problem.count; i++) {
            struct hw_tensor tensor;
            memcpy(&tensor, (const char *)&args + problem.field[i], sizeof tensor);
            if (problem.operand[i].dtype != HW_NONE)
                assert_ptr_equal(tensor.buffer, role_is_output(problem.operand[i].role)
                                                    ? &arena
                                                    : &constants);
        }
        problem_clear(&problem);
    }
}

/* Each allocation fails once. */
static void test_memory(void **state)
{
    const struct verify_filter filter = { .admission = true, .op = "get_rows" };
    const struct verify_calls calls = { 0 };
    struct hw_context *context;
    uint64_t skipped = 0;
    bool failed = true;
    (void)state;
    assert_int_equal(hw_open(NULL, &context), HW_OK);
    if (!hw_device_default(context)) {
        hw_close(context);
        skip();
    }
    for (unsigned n = 1; failed; n++) {
        struct verify_counts counts = { 0 };
        char error[VERIFY_ERROR_TEXT];
        left = n;
        verify_test(hw_device_default(context), &filter, &calls, &counts, error);
        failed = left == 0;
        left = 0;
        assert_int_equal(counts.failed, 0);
        skipped += counts.skipped;
    }
    assert_true(skipped > 0);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admission),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
