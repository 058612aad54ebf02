/* SPDX-License-Identifier: MIT */
/* test_load.c - much at once on a stand-in for the driver, which counts what reaches it: threads
 * that launch, and buffers of all sizes; and handles of the driver's. */
#include "../standin/load.h"
#include "fake.h"
#include "fake_driver.h"
#include "faults.h"
#include "objects.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "answers.h"

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

static void threads_share(void **state)
{
    (void)state;
    threads_share_an_event(&cuda);
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

/* ---- work of the application in a graph ---- */

enum { COUNT = 64 };

/* y to z */
struct copying {
    uint64_t y, z;
    int calls;
};

static int32_t submit_copy(void *user, void *stream)
{
    struct copying *copying = user;
    copying->calls++;
    return fake_copy(copying->z, copying->y, COUNT * sizeof(float), stream) ? HW_DRIVER
                                                                            : HW_OK;
}

static struct hw_tensor ones(struct hw_device *device, struct hw_queue *queue)
{
    const int64_t extent = COUNT;
    float x[COUNT];
    struct hw_tensor t;
    for (int i = 0; i < COUNT; i++)
        x[i] = 1.0f;
    ok(hw_tensor_alloc(device, 0, HW_F32, 1, &extent, &t));
    ok(hw_tensor_write(queue, &t, x, sizeof x));
    ok(hw_queue_wait(queue));
    return t;
}

static uint64_t address_of(const struct hw_tensor *t)
{
    struct hw_import memory = { .size = sizeof memory };
    ok(hw_buffer_export(t->buffer, "cuda.memory", &memory));
    return (uint64_t)(uintptr_t)memory.handle + memory.offset + t->offset;
}

/* y += one, z = y by the application, y += z: what it submits once is done at each launch, in its
 * place. */
static void graphs_have_the_applications_work(void **state)
{
    struct hw_context *context = load_open(&cuda);
    struct hw_device *device = hw_device_at(context, 0);
    struct hw_queue *queue;
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    float x[COUNT];
    (void)state;
    ok(hw_queue_open(device, NULL, &queue));
    struct hw_tensor one = ones(device, queue), y = ones(device, queue),
                     z = ones(device, queue);
    struct copying copying = { address_of(&y), address_of(&z), 0 };
    ok(hw_queue_record(queue));
    ok(hw_add(queue, &(struct hw_add){ .a = y, .b = one, .y = y }));
    ok(hw_queue_call(queue, "cuda.stream", submit_copy, &copying));
    ok(hw_add(queue, &(struct hw_add){ .a = y, .b = z, .y = y }));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.built, 1);
    assert_int_equal(copying.calls, 1);
    for (int i = 0; i < 3; i++)
        ok(hw_graph_launch(graph, queue));
    ok(hw_tensor_read(queue, &y, x, sizeof x));
    ok(hw_queue_wait(queue));
    assert_int_equal(copying.calls, 1);
    for (int i = 0; i < COUNT; i++)
        assert_true(x[i] == 22.0f); /* 1, 4, 10, 22 */
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
        cmocka_unit_test(graphs_have_the_applications_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
