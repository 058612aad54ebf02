/* SPDX-License-Identifier: MIT */
/* test_cases.c - the cases of the admission test: a faulty one would be blamed on a plugin, and an
 * op without any would never be tested there. */
#include "problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_admission) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
