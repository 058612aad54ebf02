/* SPDX-License-Identifier: MIT */
/* test_driver.c - drivers of other versions of CUDA than that of the kernels' machine code: the
 * last one that refuses it, and the first that loads that of the tuned kernels. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "tuned.h"

static int warnings;

static void hear(void *user, int32_t level, const char *line)
{
    (void)user;
    warnings += level == HW_LOG_WARN &&
                strstr(line, "is older than the kernels' machine code");
}

static void open_on(int major, int minor)
{
    char cuda[32];

    snprintf(cuda, sizeof cuda, "%d.%d", major, minor);
    setenv("STANDIN_CUDA", cuda, 1);
    warnings = 0;
    open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                    .backends = "cuda",
                                    .fallback = "error",
                                    .precision = "int8",
                                    .log_fn = hear });
}

static int open_older(void **state)
{
    (void)state;
    open_on(MACHINE_CODE_CUDA / 1000 - 1, 9);
    return 0;
}

static int open_oldest(void **state)
{
    (void)state;
    open_on(MACHINE_CODE_CUDA / 1000, 0);
    return 0;
}

static int close_older(void **state)
{
    unsetenv("STANDIN_CUDA");
    return close_all(state);
}

/* No module is machine code: neither tuned kernels nor the portable ones that ptxas translated. */
static void portable_kernels_are_launched(void **state)
{
    static const int32_t dtypes[] = { HW_F32, HW_F16, HW_BF16, HW_Q8_0, HW_Q4_K };
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const struct products p = products(hopper, dtypes[i]);
        ok(hw_matmul(queue, &p.op[0]));
        launched("matmul_");
    }
    const struct hw_tensor x = tensor(hopper, 0, HW_F32, 64, COLS);
    ok(hw_silu(queue, &(struct hw_silu){ .x = x, .y = x }));
    launched("silu_f32");
    ok(hw_queue_wait(queue));
}

static void a_device_with_tuned_kernels_warns_once(void **state)
{
    struct hw_queue *of_others[3];
    struct hw_device *const devices[] = { turing, ampere, hopper };
    (void)state;
    assert_int_equal(warnings, 1);
    for (int i = 0; i < 3; i++)
        ok(hw_queue_open(devices[i], NULL, &of_others[i]));
    assert_int_equal(warnings, 2);
    for (int i = 0; i < 3; i++)
        hw_queue_close(of_others[i]);
}

/* Where the card is another, that is the reason. */
static void a_tuned_row_says_what_it_needs(void **state)
{
    const struct hw_queue_options gemv = { .size = sizeof gemv, .kernel = "matmul_gemv" };
    struct hw_queue *other;
    (void)state;
    assert_int_equal(hw_queue_open(hopper, &gemv, &other), HW_INVALID);
    assert_non_null(strstr(hw_message(), "this device cannot run it, which needs a driver "
                                         "with CUDA "));
    assert_int_equal(hw_queue_open(turing, &gemv, &other), HW_INVALID);
    assert_non_null(strstr(hw_message(), "this device cannot run it, which needs sm_80;"));
}

/* Whatever compiler translated the portable ones: the stand-in refuses machine code of a later
 * CUDA. */
static void the_oldest_driver_runs_all_kernels(void **state)
{
    static const struct hw_queue_options portable = { .size = sizeof portable,
                                                      .kernel = "silu" };
    const struct hw_tensor x = tensor(hopper, 0, HW_F32, 64, COLS);
    const struct hw_silu op = { .x = x, .y = x };
    struct hw_queue *other;
    (void)state;
    assert_int_equal(warnings, 0);
    ok(hw_silu(queue, &op));
    launched("rows_silu");
    ok(hw_queue_open(hopper, &portable, &other));
    ok(hw_silu(other, &op));
    launched("silu_f32");
    ok(hw_queue_wait(other));
    hw_queue_close(other);
}

#define OLDER(name) cmocka_unit_test_setup_teardown(name, open_older, close_older)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OLDER(portable_kernels_are_launched),
        OLDER(a_device_with_tuned_kernels_warns_once),
        OLDER(a_tuned_row_says_what_it_needs),
        cmocka_unit_test_setup_teardown(the_oldest_driver_runs_all_kernels, open_oldest,
                                        close_older),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
