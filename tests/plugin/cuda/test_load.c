/* SPDX-License-Identifier: MIT */
/* test_load.c - much at once on a stand-in for the driver, which counts what reaches it: threads
 * that launch, and buffers of all sizes. */
#include "../standin/load.h"
#include "fake_driver.h"
#include "faults.h"
#include "objects.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct load_vendor cuda = { "cuda",           "memory_alloc", "memory_free",
                                         fake_driver_used, "cuda.stream",  "cuda.memory" };

static void threads_launch(void **state)
{
    struct hw_context *context = load_open(&cuda);
    (void)state;
    threads_launch_at_once(context);
    assert_int_equal(faults_count("launch"), LOAD_THREADS * LOAD_LAUNCHES);
    assert_int_equal(faults_count("module_load"), LOAD_DEVICES);
    assert_int_equal(faults_count("module_function"), LOAD_DEVICES);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static void memory(void **state)
{
    (void)state;
    buffers_come_and_go(&cuda);
    sizes_that_repeat_are_hits(&cuda);
}

static void handles(void **state)
{
    (void)state;
    handles_go_out_and_in(&cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_launch),
        cmocka_unit_test(memory),
        cmocka_unit_test(handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
