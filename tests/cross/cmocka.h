/* SPDX-License-Identifier: MIT */
/* cmocka.h - the parts of cmocka that the tests of the CPU plugin's rows use, for cross builds
 * without cmocka for their processor. The same programs then test its rows. A failure ends the
 * program. */
#ifndef CROSS_CMOCKA_H
#define CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function)                                                         \
    {                                                                                      \
#function, function                                                                \
    }
#define cmocka_run_group_tests(tests, setup, teardown)                                     \
    cross_run(tests, sizeof(tests) / sizeof *(tests))

#define print_message(...) ((void)printf(__VA_ARGS__))
#define fail_msg(...)                                                                      \
    (fprintf(stderr, __VA_ARGS__), fprintf(stderr, "\n%s:%d\n", __FILE__, __LINE__),       \
     exit(1))
#define assert_true(x) ((x) ? (void)0 : fail_msg("not true: %s", #x))
#define assert_int_equal(a, b)                                                             \
    ((long long)(a) == (long long)(b)                                                      \
         ? (void)0                                                                         \
         : fail_msg("%s is %lld, not %lld", #a, (long long)(a), (long long)(b)))
#define assert_non_null(p)           assert_true((p) != NULL)
#define assert_string_equal(a, b)    assert_int_equal(strcmp(a, b), 0)
#define assert_memory_equal(a, b, n) assert_int_equal(memcmp(a, b, n), 0)

static inline int cross_run(const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *state = NULL;
        tests[i].run(&state);
        printf("ok %zu - %s\n", i + 1, tests[i].name);
    }
    printf("1..%zu\n", count);
    return 0;
}

#endif
