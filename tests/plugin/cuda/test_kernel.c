/* SPDX-License-Identifier: MIT */
/* test_kernel.c - the application's kernels on a stand-in for the CUDA driver, which cannot compute
 * them: launches that reach the driver, and rejected ones; and devices found by the driver's
 * handle. $PTX names a kernel: scale.ptx. */
#include "fake_driver.h"
#include "faults.h"
#include "objects.h"

#include <hw/hw.h>
#include <hw/interop.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"

static struct hw_context *context;
static struct hw_device *device;
static struct hw_queue *queue;
static char *blob; /* without a NUL */
static size_t blob_bytes;

static void read_blob(void)
{
    FILE *file = fopen(getenv("PTX"), "rb");
    enum { MOST = 1 << 14 };
    static char text[MOST];
    assert_non_null(file);
    blob_bytes = fread(text, 1, sizeof text, file);
    assert_true(blob_bytes > 0 && blob_bytes < MOST);
    fclose(file);
    blob = malloc(blob_bytes);
    assert_non_null(blob);
    memcpy(blob, text, blob_bytes);
}

static int open_all(void **state)
{
    const struct hw_options options = { .size = sizeof options, .backends = "cuda" };
    (void)state;
    faults_reset();
    read_blob();
    ok(hw_open(&options, &context));
    device = hw_device_at(context, 0);
    ok(hw_queue_open(device, NULL, &queue));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fake_driver_watch(NULL);
    hw_close(context);
    free(blob);
    assert_int_equal(objects_count(), 0);
    assert_int_equal(fake_driver_depth(), 0);
    return 0;
}

static struct hw_user_kernel scale(void)
{
    return (struct hw_user_kernel){ .size = sizeof(struct hw_user_kernel),
                                    .group = 32,
                                    .group_y = 2,
                                    .name = "scale",
                                    .signature = "toif",
                                    .blob = blob,
                                    .blob_bytes = blob_bytes };
}

/* ---- launches ---- */

static struct {
    int count;
    char kernel[64];
    unsigned groups[3], threads[3];
    uint64_t x, y;
    int64_t n;
    float by;
} seen;

static void see(const struct fake_launch *launch)
{
    seen.count++;
    snprintf(seen.kernel, sizeof seen.kernel, "%s", launch->kernel);
    memcpy(seen.groups, launch->groups, sizeof seen.groups);
    memcpy(seen.threads, launch->threads, sizeof seen.threads);
    memcpy(&seen.x, launch->arguments[0], sizeof seen.x);
    memcpy(&seen.y, launch->arguments[1], sizeof seen.y);
    memcpy(&seen.n, launch->arguments[2], sizeof seen.n);
    memcpy(&seen.by, launch->arguments[3], sizeof seen.by);
}

static uint64_t address_of(const struct hw_tensor *t)
{
    struct hw_import memory = { .size = sizeof memory };
    ok(hw_buffer_export(t->buffer, "cuda.memory", &memory));
    return (uint64_t)(uintptr_t)memory.handle + memory.offset + t->offset;
}

static struct hw_tensor numbers(int64_t count)
{
    struct hw_tensor t;
    ok(hw_tensor_alloc(device, 0, HW_F32, 1, &count, &t));
    return t;
}

static void kernels_get_their_arguments(void **state)
{
    const struct hw_user_kernel desc = scale();
    struct hw_kernel *kernel;
    struct hw_tensor x = numbers(1000), y = numbers(1000), part;
    (void)state;
    ok(hw_tensor_slice(&part, &x, 0, 100, 900));
    ok(hw_kernel_create(device, &desc, &kernel));
    const struct hw_arg args[] = { { .kind = HW_ARG_TENSOR, .tensor = &part },
                                   { .kind = HW_ARG_TENSOR, .tensor = &y },
                                   { .kind = HW_ARG_INT, .i = -5 },
                                   { .kind = HW_ARG_FLOAT, .f = 0.5 } };
    memset(&seen, 0, sizeof seen);
    fake_driver_watch(see);
    ok(hw_kernel_launch_3d(queue, kernel, (const uint64_t[]){ 3, 4, 5 }, args, 4));
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.kernel, "scale");
    assert_memory_equal(seen.groups, ((unsigned[]){ 3, 4, 5 }), sizeof seen.groups);
    assert_memory_equal(seen.threads, ((unsigned[]){ 32, 2, 1 }), sizeof seen.threads);
    assert_int_equal(seen.x, address_of(&x) + 400);
    assert_int_equal(seen.y, address_of(&y));
    assert_int_equal(seen.n, -5);
    assert_true(seen.by == 0.5f);
    ok(hw_kernel_launch(queue, kernel, 7, args, 4));
    assert_memory_equal(seen.groups, ((unsigned[]){ 7, 1, 1 }), sizeof seen.groups);
    fails(HW_UNSUPPORTED, "1099511627776 groups",
          hw_kernel_launch(queue, kernel, UINT64_C(1) << 40, args, 4));
    fails(HW_DRIVER, "scale on cuda:0: cannot launch a kernel of the application",
          hw_kernel_launch_3d(queue, kernel, (const uint64_t[]){ 1, 70000, 1 }, args, 4));
    assert_int_equal(seen.count, 2);
    ok(hw_queue_wait(queue));
    hw_kernel_free(kernel);
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
    desc.signature = "toii";
    refused(HW_INVALID, "parameter 3 of the kernel has 4 bytes, 'i' of the signature",
            &desc);
    desc.signature = "toff";
    refused(HW_INVALID, "parameter 2 of the kernel has 8 bytes, 'f' of the signature",
            &desc);
    desc.signature = "too";
    refused(HW_INVALID, "the kernel has 4 parameters, the signature \"too\" has 3", &desc);
    desc.signature = "toifi";
    refused(HW_INVALID, "the kernel has 4 parameters, the signature \"toifi\" has 5",
            &desc);
}

static void blobs_are_for_the_device(void **state)
{
    struct hw_user_kernel desc = scale();
    char *target;
    (void)state;
    desc.name = "unscale";
    refused(HW_DRIVER, "kernel unscale on cuda:0: cannot find the kernel in the blob",
            &desc);
    desc = scale();
    target = memcpy(malloc(blob_bytes), blob, blob_bytes);
    for (size_t i = 0; i + 5 < blob_bytes; i++)
        if (!memcmp(target + i, "sm_50", 5))
            memcpy(target + i, "sm_90", 5);
    desc.blob = target;
    refused(HW_DRIVER, "no target for this device: device kernel image is invalid", &desc);
    free(target);
    desc.blob = "PTX";
    desc.blob_bytes = 3;
    refused(HW_DRIVER, "CUDA_ERROR_INVALID_IMAGE", &desc);
    assert_int_equal(faults_count("module_load"), faults_count("module_unload") + 2);
}

/* ---- devices ---- */

static void devices_are_known_by_their_numbers(void **state)
{
    struct hw_device *found;
    (void)state;
    for (int i = 0; i < 3; i++) {
        ok(hw_device_import(context, "cuda.device", (void *)(intptr_t)i, &found));
        assert_ptr_equal(found, hw_device_at(context, (uint32_t)i));
    }
    fails(HW_NO_DEVICE, "the CUDA plugin has no device 3", /* it is too old */
          hw_device_import(context, "cuda.device", (void *)(intptr_t)3, &found));
    assert_null(found);
    fails(HW_UNSUPPORTED, "\"cuda.stream\"",
          hw_device_import(context, "cuda.stream", NULL, &found));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kernels_get_their_arguments),
        TEST(kernels_have_the_parameters_of_the_signature),
        TEST(blobs_are_for_the_device),
        TEST(devices_are_known_by_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
