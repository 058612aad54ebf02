/* SPDX-License-Identifier: MIT */
/* test_helper.c - worker mode without its proxy: this program is linked with the library's objects,
 * which have no hw_worker.so beside them. The plugin stops with a reason and is never loaded here
 * instead. */
#include <hw/hw.h>
#include <hw/report.h>

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_missing(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .worker = "cpu",
                                        .plugin_path = CPU ":!",
                                        .cache_dir = "off",
                                        .log = "off",
                                        .flags = HW_OPEN_ANYWAY };
    struct hw_context *context;
    (void)state;
    assert_int_equal(hw_open(&options, &context), HW_OK);
    assert_int_equal(hw_device_count(context), 0);
    const size_t size = hw_explain(context, NULL, 0) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    hw_explain(context, text, size);
    assert_non_null(strstr(text, "\"no-helper\""));
    assert_non_null(strstr(text, "hw_worker.so, which runs plugins, cannot be used"));
    assert_non_null(strstr(text, "take the plugin out of HW_WORKER"));
    free(text);
    hw_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_missing) };
    return cmocka_run_group_tests_name("proxy helper", tests, NULL, NULL);
}
