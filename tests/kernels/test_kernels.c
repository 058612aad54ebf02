/* SPDX-License-Identifier: MIT */
/* test_kernels.c - the portable kernels, run as plain C on ragged sizes and compared
 * with definitions in double precision; and the conversions and functions they use,
 * tested exhaustively. The conformance suite tests whole plugins; this program tests the
 * kernel text, also under sanitizers. */
#include "run.h"

void launch(portable_fn *kernel, i64 groups, const void *args, const void *const *pointers)
{
#ifdef IN_GROUPS
    for (i64 g = 0; g < groups; g++)
        group_run(kernel, g, args, (void *const *)pointers);
#else
    kernel((void *const *)pointers, args, 0, groups);
#endif
}

/* Also frees the memory of a failed test. */
static int teardown(void **state)
{
    (void)state;
    release();
    return 0;
}

int main(void)
{
    static const struct family *const families[] = { &values_family, &rows_family,
                                                     &products_family, &moves_family };
    struct CMUnitTest tests[64];
    size_t count = 0;
    for (size_t f = 0; f < COUNT(families); f++) {
        const struct family family = *families[f];
        if (family.count > COUNT(tests) - count)
            abort();
        for (size_t i = 0; i < family.count; i++) {
            tests[count] = family.tests[i];
            tests[count++].teardown_func = teardown;
        }
    }
    return _cmocka_run_group_tests("kernels", tests, count, NULL, NULL);
}
