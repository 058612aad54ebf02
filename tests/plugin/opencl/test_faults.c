/* SPDX-License-Identifier: MIT */
/* test_faults.c - the OpenCL plugin on a stand-in for libOpenCL.so.1, where each call of each
 * function of opencl.def fails once: the application gets an error, nothing leaks or hangs, and the
 * other device still works. */
#include "../standin/walk.h"
#include "fake.h"
#include "faults.h"
#include "objects.h"
#include "opencl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An application's kernel, y = 3 x, from text and from a binary. For the stand-in, a binary is the
 * text after one more line. */
static void launch(struct walk *w, struct hw_queue *queue, struct hw_tensor *t)
{
    static const char text[] = "kernel void scale(...)",
                      binary[] = "-\nkernel void scale(...)";
    struct hw_user_kernel desc = { .size = sizeof desc,
                                   .group = 32,
                                   .name = "scale",
                                   .signature = "toif",
                                   .source = text };
    const struct hw_arg args[] = { { .kind = HW_ARG_TENSOR, .tensor = t },
                                   { .kind = HW_ARG_TENSOR, .tensor = t },
                                   { .kind = HW_ARG_INT, .i = t->extent[0] },
                                   { .kind = HW_ARG_FLOAT, .f = 3.0 } };
    struct hw_kernel *first = NULL, *second = NULL;
    TRY(hw_kernel_create(w->device, &desc, &first));
    desc.source = NULL;
    desc.blob = binary;
    desc.blob_bytes = sizeof binary;
    TRY(hw_kernel_create(w->device, &desc, &second));
    TRY(hw_kernel_launch(queue, first, 2, args, 4));
    TRY(hw_kernel_launch(queue, second, 2, args, 4));
    TRY(hw_queue_wait(queue));
    if (w->status)
        hw_queue_wait(queue);
    hw_kernel_free(first);
    hw_kernel_free(second);
}

/* The stand-in's own functions are not counted and do not fail. */
static void import(struct walk *w)
{
    enum { COUNT = 64 };
    const size_t bytes = COUNT * sizeof(float);
    float x[COUNT], y[COUNT];
    void *platform, *device[4];
    uint32_t count;
    int error[2] = { 0 };
    struct hw_queue *queue = NULL;
    struct hw_buffer *buffer = NULL;
    struct hw_device_info info = { .size = sizeof info };
    struct hw_tensor t = { 0 };
    int number = w->index;
    TRY(hw_device_info(w->device, &info));
    sscanf(info.name, "Stand-in %d", &number);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i / 8.0f;
    if (fake_get_platforms(1, &platform, &count) ||
        fake_get_devices(platform, 0, 4, device, &count))
        fail_msg("the stand-in does not work");
    void *ours = NULL, *context = NULL;
    TRY(hw_queue_export(w->queue, "opencl.queue", &ours));
    if (ours && fake_queue_info(ours, QUEUE_CONTEXT, sizeof context, &context, NULL))
        fail_msg("the stand-in does not tell the context");
    void *theirs = fake_create_queue(context, device[number], 0, &error[0]);
    void *memory = fake_create_buffer(context, 0, bytes, NULL, &error[1]);
    assert_false(error[0] || error[1]);
    const struct hw_import desc = {
        .size = sizeof desc, .kind = "opencl.mem", .handle = memory, .bytes = bytes
    };
    struct hw_device *found = NULL;
    TRY(hw_device_import(w->context, "opencl.device", device[number], &found));
    assert_true(w->status || found == w->device);
    TRY(hw_buffer_import(w->device, &desc, &buffer));
    TRY(hw_queue_import(w->device, NULL, "opencl.queue", theirs, &queue));
    TRY(hw_tensor_view(&t, buffer, 0, HW_F32, 1, (const int64_t[]){ COUNT }));
    TRY(hw_tensor_write(queue, &t, x, bytes));
    TRY(hw_silu(queue, &(struct hw_silu){ .x = t, .y = t }));
    TRY(hw_tensor_read(queue, &t, y, bytes));
    TRY(hw_queue_wait(queue));
    assert_true(w->status || walk_is_silu(y, x, COUNT));
    TRY(hw_tensor_write(queue, &t, x, bytes));
    launch(w, queue, &t);
    TRY(hw_tensor_read(queue, &t, y, bytes));
    TRY(hw_queue_wait(queue));
    for (int i = 0; i < COUNT; i++)
        assert_true(w->status || y[i] == 9.0f * x[i]);
    hw_queue_close(queue);
    hw_buffer_free(buffer);
    fake_release_buffer(memory);
    fake_release_queue(theirs);
}

/* Facts that cannot be read stay empty; a compiler's log may be missing. */
static const char *const quiet[] = { "device_info", "platform_info", "build_info", NULL };

static const struct vendor opencl = {
    .backend = "opencl",
    .error = { -5, "CL_OUT_OF_RESOURCES" },
    .fatal = { -36, "CL_INVALID_COMMAND_QUEUE" },
    .first_on_a_device = "create_context",
    .quiet = quiet,
    .graphs = true,
    .import = import,
    .living = objects_count,
};

static void every_call(void **state)
{
    (void)state;
    every_call_fails_once(&opencl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
