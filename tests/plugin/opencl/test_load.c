/* SPDX-License-Identifier: MIT */
/* test_load.c - threads that launch at once on a stand-in for libOpenCL.so.1, which counts what
 * reaches it. */
#include "../standin/load.h"
#include "faults.h"
#include "objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void threads_launch(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "opencl",
                                        .fallback = "error" };
    struct hw_context *context;
    (void)state;
    faults_reset();
    if (hw_open(&options, &context))
        fail_msg("%s", hw_message());
    threads_launch_at_once(context);
    assert_int_equal(faults_count("launch"), LOAD_THREADS * LOAD_LAUNCHES);
    /* a program for the largest groups, which the stand-in's kernels cannot have, and another */
    assert_int_equal(faults_count("program_of_source"), 2 * LOAD_DEVICES);
    assert_int_equal(faults_count("create_kernel"), 2 * LOAD_DEVICES + LOAD_THREADS);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_launch) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
