/* SPDX-License-Identifier: MIT */
/* test_module.c - the application's kernels as source text: on the stand-ins for the driver and for
 * NVRTC or, without these, on a card. */
#define _GNU_SOURCE /* setenv, RTLD_DEFAULT */
#include "fake_nvrtc.h"

#include <hw/hw.h>
#include <hw/interop.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../standin/answers.h"

static const char text[] =
    "extern \"C\" __global__ void scale(const float *x, float *y, long long n, float by)\n"
    "{\n"
    "    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        y[i] = by * x[i];\n"
    "}\n";

static struct hw_context *context;
static struct hw_device *device;
static struct hw_queue *queue;
static struct fake_nvrtc *nvrtc, *nvrtc_12; /* NULL: the real one */

static struct fake_nvrtc *find_standin(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "fake_nvrtc_state") : NULL;
    struct fake_nvrtc *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof get);
    if (get)
        *get() = (struct fake_nvrtc){ .newest = 75 };
    return get ? get() : NULL;
}

static int open_all(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "cuda",
                                        .cache_dir = *state ? *state : "off" };
    nvrtc = find_standin("libnvrtc.so.13");
    nvrtc_12 = find_standin("libnvrtc.so.12");
    ok(hw_open(&options, &context));
    device = hw_device_at(context, 0);
    ok(hw_queue_open(device, NULL, &queue));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hw_close(context);
    if (nvrtc)
        assert_int_equal(nvrtc->programs, 0);
    return 0;
}

static struct hw_user_kernel scale(void)
{
    return (struct hw_user_kernel){ .size = sizeof(struct hw_user_kernel),
                                    .group = 32,
                                    .name = "scale",
                                    .signature = "toif",
                                    .source = text };
}

static void refused(enum hw_status status, const char *words,
                    const struct hw_user_kernel *desc)
{
    struct hw_kernel *kernel;
    fails(status, words, hw_kernel_create(device, desc, &kernel));
    assert_null(kernel);
}

static void needs_standin(void)
{
    if (!nvrtc || !nvrtc_12)
        skip();
}

/* ---- computing ---- */

static void launch(struct hw_kernel *kernel)
{
    enum { COUNT = 1000, GROUP = 32 };
    static float from[COUNT], to[COUNT];
    struct hw_tensor x, y;
    for (int i = 0; i < COUNT; i++)
        from[i] = (float)i;
    ok(hw_tensor_alloc(device, 0, HW_F32, 1, (const int64_t[]){ COUNT }, &x));
    ok(hw_tensor_alloc(device, HW_BUFFER_ZEROED, HW_F32, 1, (const int64_t[]){ COUNT },
                       &y));
    ok(hw_tensor_write(queue, &x, from, sizeof from));
    const struct hw_arg args[] = { { .kind = HW_ARG_TENSOR, .tensor = &x },
                                   { .kind = HW_ARG_TENSOR, .tensor = &y },
                                   { .kind = HW_ARG_INT, .i = COUNT - 1 },
                                   { .kind = HW_ARG_FLOAT, .f = 0.5 } };
    ok(hw_kernel_launch(queue, kernel, (COUNT + GROUP - 1) / GROUP, args, 4));
    ok(hw_tensor_read(queue, &y, to, sizeof to));
    ok(hw_queue_wait(queue));
    for (int i = 0; i < COUNT && !nvrtc; i++) /* the stand-in computes nothing */
        assert_true(to[i] == (i < COUNT - 1 ? 0.5f * from[i] : 0));
    hw_buffer_free(x.buffer);
    hw_buffer_free(y.buffer);
}

static void text_becomes_a_kernel(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    (void)state;
    ok(hw_kernel_create(device, &desc, &kernel));
    launch(kernel);
    hw_kernel_free(kernel);
    if (nvrtc)
        assert_string_equal(nvrtc->option, "--gpu-architecture=sm_75");
}

static void an_old_compiler_makes_ptx(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    (void)state;
    needs_standin();
    nvrtc->newest = 61;
    ok(hw_kernel_create(device, &desc, &kernel));
    hw_kernel_free(kernel);
    assert_string_equal(nvrtc->option, "--gpu-architecture=compute_61");
    nvrtc->newest = 0;
    refused(HW_UNSUPPORTED, "compiles for no card as old as this one", &desc);
}

static void text_is_compiled_once(void **state)
{
    struct hw_user_kernel desc = scale();
    char other[sizeof text + 1];
    (void)state;
    needs_standin();
    for (int i = 0; i < 3; i++) {
        struct hw_kernel *kernel;
        ok(hw_kernel_create(device, &desc, &kernel));
        hw_kernel_free(kernel);
    }
    assert_int_equal(nvrtc->compiled, 1);
    snprintf(other, sizeof other, "%s\n", text);
    desc.source = other;
    struct hw_kernel *kernel;
    ok(hw_kernel_create(device, &desc, &kernel));
    hw_kernel_free(kernel);
    assert_int_equal(nvrtc->compiled, 2);
}

/* ---- an older driver ---- */

static int open_older(void **state)
{
    setenv("STANDIN_CUDA", "12.4", 1);
    return open_all(state);
}

static int close_older(void **state)
{
    unsetenv("STANDIN_CUDA");
    return close_all(state);
}

/* Both compilers are installed. */
static void each_driver_has_its_own_compiler(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    needs_standin();
    ok(hw_kernel_create(device, &desc, &kernel));
    hw_kernel_free(kernel);
    assert_int_equal(nvrtc->compiled, 1);
    assert_int_equal(nvrtc_12->compiled, 0);
    close_all(state);
    open_older(state);
    ok(hw_kernel_create(device, &desc, &kernel));
    hw_kernel_free(kernel);
    assert_int_equal(nvrtc->compiled, 0);
    assert_int_equal(nvrtc_12->compiled, 1);
}

static void a_compiler_too_new_for_the_driver_is_refused(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    (void)state;
    needs_standin();
    nvrtc_12->version = 13000;
    refused(
        HW_UNSUPPORTED,
        "the installed NVRTC belongs to CUDA 13.0, but the driver supports CUDA 12.4 and cannot "
        "load NVRTC's machine code: install NVRTC 12.4 or a newer driver",
        &desc);
    nvrtc_12->version = 12080;
    ok(hw_kernel_create(device, &desc, &kernel));
    hw_kernel_free(kernel);
    nvrtc_12->newest = 61; /* so that it makes PTX */
    refused(HW_UNSUPPORTED,
            "CUDA 12.8, but the driver supports CUDA 12.4 and cannot load NVRTC's PTX",
            &desc);
    nvrtc_12->version = 12040;
    ok(hw_kernel_create(device, &desc, &kernel));
    hw_kernel_free(kernel);
    assert_int_equal(nvrtc_12->compiled, 2);
}

/* ---- rejected calls ---- */

static void errors_of_the_text_are_said(void **state)
{
    struct hw_user_kernel desc = scale();
    (void)state;
    desc.source = "extern \"C\" __global__ void scal(float *x) { x[0] = scale; }";
    refused(HW_DRIVER, "error: identifier \"scale\" is undefined", &desc);
    desc = scale();
    desc.name = "unscale";
    refused(HW_DRIVER, "extern \"C\" __global__", &desc);
    desc = scale();
    desc.signature = "too";
    refused(HW_INVALID, "the kernel has 4 parameters, the signature \"too\" has 3", &desc);
}

static void each_call_may_fail(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel = NULL;
    int failed = 0;
    (void)state;
    needs_standin();
    for (; !kernel; failed++) {
        *nvrtc = (struct fake_nvrtc){ .newest = 75, .fails = failed + 1, .result = 11 };
        const enum hw_status status = hw_kernel_create(device, &desc, &kernel);
        if (status)
            fails(HW_DRIVER, "NVRTC_ERROR_OTHER (11)", status);
        assert_int_equal(nvrtc->programs, 0);
    }
    hw_kernel_free(kernel);
    assert_int_equal(failed, 8); /* seven calls, and then none */
    *nvrtc = (struct fake_nvrtc){ .newest = 75, .fails = 4, .result = 1 };
    refused(HW_NO_MEMORY, "NVRTC_ERROR_OTHER", &desc);
}

static char *cache;

static int make_cache(void **state)
{
    static char name[] = "/tmp/hw-module-XXXXXX";
    cache = mkdtemp(name);
    assert_non_null(cache);
    *state = cache;
    return open_all(state);
}

static int remove_cache(void **state)
{
    char command[64];
    close_all(state);
    *state = NULL;
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(text_becomes_a_kernel),
        TEST(an_old_compiler_makes_ptx),
        cmocka_unit_test_setup_teardown(text_is_compiled_once, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(each_driver_has_its_own_compiler, open_all,
                                        close_older),
        cmocka_unit_test_setup_teardown(a_compiler_too_new_for_the_driver_is_refused,
                                        open_older, close_older),
        TEST(errors_of_the_text_are_said),
        TEST(each_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
