/* SPDX-License-Identifier: MIT */
/* test_load.c - load tests on a stand-in for libOpenCL.so.1, which counts calls: threads that
 * launch, buffers of all sizes, and graphs. */
#define _POSIX_C_SOURCE 200809L
#include "../standin/load.h"
#include "fake.h"
#include "fake_opencl.h"
#include "faults.h"
#include "kernels.h"
#include "objects.h"
#include "opencl.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "answers.h"

static uint64_t used(int device)
{
    (void)device;
    return fake_opencl_used();
}

static const struct load_vendor opencl = { "opencl", "create_buffer", "release_buffer",
                                           used,     "opencl.queue",  "opencl.mem" };

static void threads_launch(void **state)
{
    struct hw_context *context = load_open(&opencl);
    (void)state;
    threads_launch_at_once(context);
    assert_int_equal(faults_count("launch"), LOAD_THREADS * LOAD_LAUNCHES);
    /* one program for the largest groups, which the stand-in's kernels cannot have, and a second
     * one */
    assert_int_equal(faults_count("program_of_source"), 2 * LOAD_DEVICES);
    assert_int_equal(faults_count("create_kernel"), 2 * LOAD_DEVICES + LOAD_THREADS);
    assert_int_equal(faults_count("program_info"), 0); /* no cache would keep a binary */
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static void threads_share(void **state)
{
    (void)state;
    threads_share_an_event(&opencl);
    assert_int_equal(objects_count(), 0);
}

/* ---- memory ---- */

static void memory(void **state)
{
    (void)state;
    buffers_come_and_go(&opencl);
    sizes_that_repeat_are_hits(&opencl);
}

/* Fills most of the memory with buffers of the largest size that the device allows. */
static void out_of_memory_has_the_sizes(void **state)
{
    struct hw_context *context = load_open(&opencl);
    struct hw_device *device = hw_device_at(context, 0);
    struct hw_buffer *buffer;
    (void)state;
    for (int i = 0; i < 3; i++)
        ok(hw_buffer_alloc(device, FAKE_OPENCL_MEMORY / 4, 0, &buffer));
    ok(hw_buffer_alloc(device, FAKE_OPENCL_MEMORY / 8, 0, &buffer));
    fails(
        HW_NO_MEMORY,
        "opencl:0: 1 GiB requested, 3.50 GiB allocated by this process: cannot allocate "
        "1073741824 bytes of the device's 4294967296: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)",
        hw_buffer_alloc(device, FAKE_OPENCL_MEMORY / 4, 0, &buffer));
    setenv("STANDIN_EXTENSIONS", "cl_amd_device_attribute_query", 1);
    fails(HW_NO_MEMORY,
          "of the device's 4294967296, of which 536870912 are free: CL_MEM_OBJECT",
          hw_buffer_alloc(device, FAKE_OPENCL_MEMORY / 4, 0, &buffer));
    unsetenv("STANDIN_EXTENSIONS");
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static struct hw_tensor tensor(struct hw_device *device, int64_t rows, int64_t heads)
{
    struct hw_tensor t;
    ok(hw_tensor_alloc(device, 0, HW_F32, 3, (const int64_t[]){ rows, heads, 64 }, &t));
    return t;
}

/* The same message for a workspace. With local memory, the device gets a kernel that needs a
 * workspace; the stand-in could not run it. */
static void workspaces_have_the_sizes(void **state)
{
    struct hw_context *context;
    struct hw_queue *queue;
    (void)state;
    setenv("STANDIN_NUMBERS", "0x1023=32768", 1);
    context = load_open(&opencl);
    struct hw_device *device = hw_device_at(context, LOAD_DEVICES - 1);
    const struct hw_attention op = { .q = tensor(device, 1, 4),
                                     .k = tensor(device, 300, 1),
                                     .v = tensor(device, 300, 1),
                                     .y = tensor(device, 1, 4) };
    ok(hw_queue_open(device, NULL, &queue));
    faults_arm("create_buffer", 0, MEM_OBJECT_ALLOCATION_FAILURE);
    fails(HW_NO_MEMORY,
          "bytes for kernels of the device's 4294967296: CL_MEM_OBJECT_ALLOCATION_FAILURE",
          hw_attention(queue, &op));
    setenv("STANDIN_EXTENSIONS", "cl_amd_device_attribute_query", 1);
    fails(HW_NO_MEMORY, "bytes for kernels of the device's 4294967296, of which 42",
          hw_attention(queue, &op));
    unsetenv("STANDIN_EXTENSIONS");
    unsetenv("STANDIN_NUMBERS");
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

/* ---- graphs ---- */

enum { COUNT = 64, LAUNCHES = 100, NODES = 3 };

/* y += x, y *= y, y = x - y; the second op has another kernel than the others. */
struct recorded {
    struct hw_device *device;
    struct hw_tensor x, y;
    struct hw_graph *graph;
};

static struct hw_queue *open_queue(struct hw_device *device)
{
    struct hw_queue *queue;
    ok(hw_queue_open(device, NULL, &queue));
    return queue;
}

static void record(struct recorded *r, struct hw_queue *queue)
{
    const int64_t n = COUNT;
    ok(hw_tensor_alloc(r->device, 0, HW_F32, 1, &n, &r->x));
    ok(hw_tensor_alloc(r->device, 0, HW_F32, 1, &n, &r->y));
    ok(hw_queue_record(queue));
    ok(hw_add(queue, &(struct hw_add){ .a = r->y, .b = r->x, .y = r->y }));
    ok(hw_mul(queue, &(struct hw_mul){ .a = r->y, .b = r->y, .y = r->y }));
    ok(hw_sub(queue, &(struct hw_sub){ .a = r->x, .b = r->y, .y = r->y }));
    ok(hw_queue_end(queue, &r->graph));
}

static unsigned launches_of(struct hw_queue *queue, uint32_t op)
{
    struct hw_call_stats stats = { .size = sizeof stats };
    ok(hw_queue_calls(queue, op, &stats));
    return (unsigned)stats.calls;
}

/* Ops of the same kernels, submitted in between, do not change the graph's arguments. */
static void graphs_keep_their_arguments(void **state)
{
    struct hw_context *context = load_open(&opencl);
    struct recorded r = { .device = hw_device_at(context, 0) };
    struct hw_queue *queue = open_queue(r.device);
    float x[COUNT], y[COUNT], z[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i / COUNT;
        y[i] = 0.5f;
    }
    record(&r, queue);
    ok(hw_tensor_write(queue, &r.x, x, sizeof x));
    ok(hw_tensor_write(queue, &r.y, y, sizeof y));
    ok(hw_graph_launch(r.graph, queue));
    ok(hw_add(queue, &(struct hw_add){ .a = r.x, .b = r.x, .y = r.x }));
    const unsigned set = faults_count("set_argument");
    ok(hw_graph_launch(r.graph, queue));
    assert_int_equal(faults_count("set_argument"), set);
    assert_int_equal(faults_count("launch"), 2 * NODES + 1);
    assert_int_equal(launches_of(queue, HW_OP_SUB), 2);
    ok(hw_tensor_read(queue, &r.y, z, sizeof z));
    ok(hw_queue_wait(queue));
    for (int i = 0; i < COUNT; i++) {
        const float once = x[i] - (y[i] + x[i]) * (y[i] + x[i]);
        assert_true(z[i] == 2.0f * x[i] - (once + 2.0f * x[i]) * (once + 2.0f * x[i]));
    }
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static void *launch_often(void *data)
{
    const struct recorded *r = data;
    struct hw_queue *queue = open_queue(r->device);
    for (int i = 0; i < LAUNCHES; i++)
        ok(hw_graph_launch(r->graph, queue));
    ok(hw_queue_wait(queue));
    hw_queue_close(queue);
    return NULL;
}

/* Both launches write y, which an application would order by an event. Nothing is computed. */
static void queues_share_a_graph(void **state)
{
    struct hw_context *context = load_open(&opencl);
    struct recorded r = { .device = hw_device_at(context, 0) };
    struct hw_queue *queue = open_queue(r.device);
    pthread_t thread;
    (void)state;
    kernels_compute(false);
    record(&r, queue);
    assert_int_equal(pthread_create(&thread, NULL, launch_often, &r), 0);
    launch_often(&r);
    pthread_join(thread, NULL);
    kernels_compute(true);
    assert_int_equal(faults_count("launch"), 2 * LAUNCHES * NODES);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static int32_t be_called(void *user, void *handle)
{
    *(int *)user += handle != NULL;
    return HW_OK;
}

/* The application's calls cannot be recorded: each launch calls the application. */
static void graphs_call_the_application(void **state)
{
    struct hw_context *context = load_open(&opencl);
    struct hw_queue *queue = open_queue(hw_device_at(context, 0));
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    int called = 0;
    (void)state;
    ok(hw_queue_record(queue));
    ok(hw_queue_call(queue, "opencl.queue", be_called, &called));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.built, 0);
    ok(hw_graph_launch(graph, queue));
    ok(hw_graph_launch(graph, queue));
    assert_int_equal(called, 2);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static void handles(void **state)
{
    (void)state;
    handles_go_out_and_in(&opencl);
}

/* Handles of another context cannot be used with the device's kernels and memory. */
static void another_context_is_refused(void **state)
{
    struct hw_context *context = load_open(&opencl);
    struct hw_device *device = hw_device_at(context, 0);
    void *platform, *first, *other, *theirs;
    struct hw_import memory = { .size = sizeof memory, .kind = opencl.memory, .bytes = 64 };
    struct hw_queue *queue;
    struct hw_buffer *buffer;
    uint32_t count;
    int error[3];
    (void)state;
    assert_int_equal(fake_get_platforms(1, &platform, &count), 0);
    assert_int_equal(fake_get_devices(platform, 0, 1, &first, &count), 0);
    other = fake_create_context(NULL, 1, &first, NULL, NULL, &error[0]);
    theirs = fake_create_queue(other, first, 0, &error[1]);
    memory.handle = fake_create_buffer(other, 0, 64, NULL, &error[2]);
    assert_false(error[0] || error[1] || error[2]);
    fails(HW_INVALID, "the queue belongs to another context than the device's",
          hw_queue_import(device, NULL, opencl.queue, theirs, &queue));
    fails(HW_INVALID, "the memory object belongs to another context than the device's",
          hw_buffer_import(device, &memory, &buffer));
    hw_close(context);
    fake_release_buffer(memory.handle);
    fake_release_queue(theirs);
    fake_release_context(other);
    assert_int_equal(objects_count(), 0);
}

/* An imported queue must have the requested properties. */
static void queues_without_order_are_refused(void **state)
{
    enum { OUT_OF_ORDER = 1, PROFILING = 2 };
    const struct hw_queue_options timing = { .size = sizeof timing,
                                             .flags = HW_QUEUE_TIMING };
    struct hw_context *context = load_open(&opencl);
    struct hw_device *device = hw_device_at(context, 0);
    struct hw_queue *own = open_queue(device), *queue;
    void *handle, *with = NULL, *first, *platform, *plain, *unordered, *timed;
    uint32_t count;
    int error[3];
    (void)state;
    assert_int_equal(fake_get_platforms(1, &platform, &count), 0);
    assert_int_equal(fake_get_devices(platform, 0, 1, &first, &count), 0);
    ok(hw_queue_export(own, opencl.queue, &handle));
    assert_int_equal(fake_queue_info(handle, QUEUE_CONTEXT, sizeof with, &with, NULL), 0);
    plain = fake_create_queue(with, first, 0, &error[0]);
    unordered = fake_create_queue(with, first, OUT_OF_ORDER | PROFILING, &error[1]);
    timed = fake_create_queue(with, first, PROFILING, &error[2]);
    assert_false(error[0] || error[1] || error[2]);
    fails(HW_UNSUPPORTED,
          "the queue is out-of-order, and the work of a queue has to be done",
          hw_queue_import(device, NULL, opencl.queue, unordered, &queue));
    fails(HW_UNSUPPORTED,
          "the queue does not measure time; make it with CL_QUEUE_PROFILING",
          hw_queue_import(device, &timing, opencl.queue, plain, &queue));
    ok(hw_queue_import(device, &timing, opencl.queue, timed, &queue));
    hw_close(context);
    fake_release_queue(plain);
    fake_release_queue(unordered);
    fake_release_queue(timed);
    assert_int_equal(objects_count(), 0);
}

static void memory_that_is_too_small_is_refused(void **state)
{
    const uint64_t most = UINT64_C(1) << 62;
    struct hw_context *context = load_open(&opencl);
    struct hw_device *device = hw_device_at(context, 0);
    struct hw_import memory = { .size = sizeof memory };
    struct hw_buffer *ours, *buffer;
    (void)state;
    ok(hw_buffer_alloc(device, 64, 0, &ours));
    ok(hw_buffer_export(ours, opencl.memory, &memory));
    memory.bytes = most;
    memory.offset = 16;
    fails(HW_INVALID, "which is less than 4611686018427387904 at offset 16",
          hw_buffer_import(device, &memory, &buffer));
    memory.bytes = 1;
    memory.offset = most;
    fails(HW_INVALID, "which is less than 1 at offset 4611686018427387904",
          hw_buffer_import(device, &memory, &buffer));
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_launch),
        cmocka_unit_test(threads_share),
        cmocka_unit_test(memory),
        cmocka_unit_test(handles),
        cmocka_unit_test(another_context_is_refused),
        cmocka_unit_test(queues_without_order_are_refused),
        cmocka_unit_test(memory_that_is_too_small_is_refused),
        cmocka_unit_test(out_of_memory_has_the_sizes),
        cmocka_unit_test(workspaces_have_the_sizes),
        cmocka_unit_test(graphs_keep_their_arguments),
        cmocka_unit_test(queues_share_a_graph),
        cmocka_unit_test(graphs_call_the_application),
    };
    /* STANDIN_NUMBERS changes the last device only. */
    setenv("STANDIN_DEVICES", "3.0 1.2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
