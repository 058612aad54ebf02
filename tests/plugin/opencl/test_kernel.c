/* SPDX-License-Identifier: MIT */
/* test_kernel.c - the application's kernels, from OpenCL C and from a program binary, on the first
 * OpenCL device: the stand-in's, which knows these two kernels, or a real one. */
#define _POSIX_C_SOURCE 200809L
#include <hw/hw.h>
#include <hw/interop.h>

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../standin/answers.h"

enum {
#define CONSTANT(name, value, theirs) name = value,
#include "opencl.def"
};

static const char text[] =
    "kernel void scale(global const uchar *x, long x_offset, global uchar *y, long y_offset,\n"
    "                  long n, float by)\n"
    "{\n"
    "    const size_t i = get_global_id(0);\n"
    "    if (i < (size_t)n)\n"
    "        ((global float *)(y + y_offset))[i] =\n"
    "            by * ((global const float *)(x + x_offset))[i];\n"
    "}\n"
    "kernel void place(global uchar *y, long y_offset)\n"
    "{\n"
    "    long at = 0, value = 0;\n"
    "    for (int d = 2; d >= 0; d--) {\n"
    "        at = at * (long)get_global_size(d) + (long)get_global_id(d);\n"
    "        value = value * 1000 + (long)(get_group_id(d) * 10 + get_local_id(d));\n"
    "    }\n"
    "    ((global long *)(y + y_offset))[at] = value;\n"
    "}\n";

static struct hw_context *context;
static struct hw_device *device;
static struct hw_queue *queue;

static int open_all(void **state)
{
    const struct hw_options options = { .size = sizeof options, .backends = "opencl" };
    (void)state;
    ok(hw_open(&options, &context));
    device = hw_device_at(context, 0);
    ok(hw_queue_open(device, NULL, &queue));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hw_close(context);
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

static struct hw_tensor numbers(int64_t count)
{
    struct hw_tensor t;
    ok(hw_tensor_alloc(device, HW_BUFFER_ZEROED, HW_F32, 1, &count, &t));
    return t;
}

/* ---- computing ---- */

enum { COUNT = 1000, FIRST = 100, LAST = 900 };

/* Checks that y = by x for elements FIRST .. LAST - 1, and that others are unchanged. */
static void scales(struct hw_queue *at, struct hw_kernel *kernel, double by)
{
    float x[COUNT], y[COUNT];
    struct hw_tensor from = numbers(COUNT), to = numbers(COUNT), part, place;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    ok(hw_tensor_slice(&part, &from, 0, FIRST, LAST));
    ok(hw_tensor_slice(&place, &to, 0, FIRST, LAST));
    const struct hw_arg args[] = { { .kind = HW_ARG_TENSOR, .tensor = &part },
                                   { .kind = HW_ARG_TENSOR, .tensor = &place },
                                   { .kind = HW_ARG_INT, .i = LAST - FIRST },
                                   { .kind = HW_ARG_FLOAT, .f = by } };
    ok(hw_tensor_write(at, &from, x, sizeof x));
    ok(hw_kernel_launch(at, kernel, (LAST - FIRST + 31) / 32, args, 4));
    ok(hw_tensor_read(at, &to, y, sizeof y));
    ok(hw_queue_wait(at));
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == (i < FIRST || i >= LAST ? 0.0f : (float)by * x[i]));
    hw_buffer_free(from.buffer);
    hw_buffer_free(to.buffer);
}

static void kernels_get_their_arguments(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    (void)state;
    ok(hw_kernel_create(device, &desc, &kernel));
    scales(queue, kernel, 0.5);
    scales(queue, kernel, -3.0);
    hw_kernel_free(kernel);
}

static void groups_have_three_dimensions(void **state)
{
    enum { X = 3 * 8, Y = 2 * 2, Z = 4, ALL = X * Y * Z };
    static int64_t y[ALL];
    struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    struct hw_tensor t = numbers(2 * ALL);
    const struct hw_arg arg = { .kind = HW_ARG_TENSOR, .tensor = &t };
    (void)state;
    desc.name = "place";
    desc.signature = "o";
    desc.group = 8;
    desc.group_y = 2;
    ok(hw_kernel_create(device, &desc, &kernel));
    ok(hw_kernel_launch_3d(queue, kernel, (const uint64_t[]){ 3, 2, Z }, &arg, 1));
    ok(hw_tensor_read(queue, &t, y, sizeof y));
    ok(hw_queue_wait(queue));
    for (int z = 0, i = 0; z < Z; z++)
        for (int v = 0; v < Y; v++)
            for (int u = 0; u < X; u++, i++)
                assert_int_equal(y[i], (u / 8 * 10 + u % 8) + (v / 2 * 10 + v % 2) * 1000 +
                                           z * 10 * 1000000);
    fails(HW_UNSUPPORTED, "1099511627776 groups",
          hw_kernel_launch(queue, kernel, UINT64_C(1) << 40, &arg, 1));
    hw_kernel_free(kernel);
    hw_buffer_free(t.buffer);
}

/* ---- several queues ---- */

static void *launch_often(void *kernel)
{
    struct hw_queue *own;
    ok(hw_queue_open(device, NULL, &own));
    for (int i = 0; i < 20; i++)
        scales(own, kernel, i);
    hw_queue_close(own);
    return NULL;
}

static void queues_share_a_kernel(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    pthread_t thread;
    (void)state;
    ok(hw_kernel_create(device, &desc, &kernel));
    assert_int_equal(pthread_create(&thread, NULL, launch_often, kernel), 0);
    for (int i = 0; i < 20; i++)
        scales(queue, kernel, -i);
    pthread_join(thread, NULL);
    hw_kernel_free(kernel);
}

/* ---- binaries ---- */

static struct {
#define REQUIRED(result, name, arguments, names) result(*name) arguments;
#define OPTIONAL(result, name, arguments, names) result(*name) arguments;
#include "opencl.def"
} cl;

static void load_opencl(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW), *found;
    assert_non_null(library);
#define REQUIRED(result, name, arguments, names)                                           \
    found = dlsym(library, names);                                                         \
    assert_non_null(found);                                                                \
    memcpy(&cl.name, &found, sizeof found);
#include "opencl.def"
}

/* The program binary for the first device, as an application would store it. */
static unsigned char *binary_of(const char *source, size_t *bytes)
{
    void *platform, *first[8], *made, *program;
    uint32_t count;
    int error;
    load_opencl();
    assert_int_equal(cl.get_platforms(1, &platform, &count), 0);
    assert_int_equal(cl.get_devices(platform, UINT32_MAX, 8, first, &count), 0);
    made = cl.create_context(NULL, 1, first, NULL, NULL, &error);
    assert_int_equal(error, 0);
    program = cl.program_of_source(made, 1, &source, NULL, &error);
    assert_int_equal(error, 0);
    assert_int_equal(cl.build_program(program, 1, first, "-cl-std=CL1.2", NULL, NULL), 0);
    assert_int_equal(
        cl.program_info(program, PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL), 0);
    unsigned char *binary = malloc(*bytes);
    assert_non_null(binary);
    assert_int_equal(
        cl.program_info(program, PROGRAM_BINARIES, sizeof binary, &binary, NULL), 0);
    cl.release_program(program);
    cl.release_context(made);
    return binary;
}

static void binaries_are_for_the_device(void **state)
{
    struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    size_t bytes;
    unsigned char *binary = binary_of(text, &bytes);
    (void)state;
    desc.source = NULL;
    desc.blob = binary;
    desc.blob_bytes = bytes;
    ok(hw_kernel_create(device, &desc, &kernel));
    scales(queue, kernel, 2.0);
    hw_kernel_free(kernel);
    memset(binary, '?', bytes);
    fails(HW_DRIVER, "kernel scale on opencl:0: cannot load a compiled kernel",
          hw_kernel_create(device, &desc, &kernel));
    assert_null(kernel);
    free(binary);
}

/* ---- rejected calls ---- */

static void refused(enum hw_status status, const char *words,
                    const struct hw_user_kernel *desc)
{
    struct hw_kernel *kernel;
    fails(status, words, hw_kernel_create(device, desc, &kernel));
    assert_null(kernel);
}

static void kernels_have_the_parameters_of_the_signature(void **state)
{
    struct hw_user_kernel desc = scale();
    (void)state;
    desc.signature = "tooi";
    refused(HW_INVALID,
            "the kernel has 6 parameters, the signature \"tooi\" has 7: a tensor is two, a "
            "pointer and a long",
            &desc);
    desc.signature = "toii";
    refused(HW_INVALID, "parameter 5 of the kernel is not a long, as 'i' of the signature",
            &desc);
    desc.signature = "toff";
    refused(HW_INVALID, "parameter 4 of the kernel is not a float, as 'f' of the signature",
            &desc);
}

static void kernels_compile(void **state)
{
    struct hw_user_kernel desc = scale();
    (void)state;
    desc.name = "unscale";
    refused(HW_DRIVER,
            "kernel unscale on opencl:0: cannot find the kernel in the program: "
            "CL_INVALID_KERNEL_NAME (-46)",
            &desc);
    desc = scale();
    desc.source = "#error no\n";
    refused(HW_DRIVER, "cannot compile scale for", &desc);
    desc = scale();
    desc.group = desc.group_y = desc.group_z = UINT32_MAX;
    refused(HW_UNSUPPORTED, "the device runs this kernel in groups of at most", &desc);
}

/* Otherwise the implementation would reject the launch. */
static void groups_are_those_that_the_kernel_requires(void **state)
{
    char source[sizeof text + 64];
    struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    (void)state;
    snprintf(source, sizeof source, "__attribute__((reqd_work_group_size(32, 1, 1))) %s",
             text);
    desc.source = source;
    ok(hw_kernel_create(device, &desc, &kernel));
    scales(queue, kernel, 0.5);
    hw_kernel_free(kernel);
    desc.group_y = 2;
    refused(HW_INVALID, "32 x 2 x 1 work-items; the kernel requires 32 x 1 x 1", &desc);
    desc.group_y = 0;
    desc.group = 16;
    refused(HW_INVALID, "16 x 1 x 1 work-items; the kernel requires 32 x 1 x 1", &desc);
}

/* Otherwise PoCL would end the process at the launch. */
static void local_memory_is_the_devices(void **state)
{
    static const char much[] =
        "kernel void scale(global const uchar *x, long x_offset, global uchar *y,\n"
        "                  long y_offset, long n, float by)\n"
        "{\n"
        "    local char held[1073741824];\n"
        "    held[get_local_id(0)] = x[get_local_id(0)];\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    y[get_local_id(0)] = held[n];\n"
        "}\n";
    struct hw_user_kernel desc = scale();
    (void)state;
    desc.source = much;
    refused(HW_UNSUPPORTED,
            "the kernel has 1073741824 bytes of local memory; the device has", &desc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kernels_get_their_arguments),
        TEST(groups_have_three_dimensions),
        TEST(queues_share_a_kernel),
        TEST(binaries_are_for_the_device),
        TEST(kernels_have_the_parameters_of_the_signature),
        TEST(kernels_compile),
        TEST(groups_are_those_that_the_kernel_requires),
        TEST(local_memory_is_the_devices),
    };
    /* A stand-in has no local memory by default. This much is too little for tuned kernels. */
    setenv("STANDIN_DEVICES", "3.0", 1);
    setenv("STANDIN_NUMBERS", "0x1023=1024", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
