/* SPDX-License-Identifier: MIT */
/* test_load.c - load tests on a stand-in for the driver, which counts calls: threads that launch,
 * and buffers of all sizes; and the driver's handles. */
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

/* ---- memory of the application ---- */

enum { BYTES = 1024 };

/* 1 KiB of device memory, with the context of its device. */
struct theirs {
    int device;
    void *context;
    uint64_t address;
};

static struct theirs allocate_on(int number)
{
    struct theirs theirs = { .device = number };
    void *context;
    assert_int_equal(fake_context_retain(&theirs.context, number), 0);
    assert_int_equal(fake_context_push(theirs.context), 0);
    assert_int_equal(fake_memory_alloc(&theirs.address, BYTES), 0);
    assert_int_equal(fake_context_pop(&context), 0);
    return theirs;
}

static void give_back(const struct theirs *theirs)
{
    void *context;
    assert_int_equal(fake_context_push(theirs->context), 0);
    assert_int_equal(fake_memory_free(theirs->address), 0);
    assert_int_equal(fake_context_pop(&context), 0);
    assert_int_equal(fake_context_release(theirs->device), 0);
}

/* Part of a memory: `bytes` at `offset` from `address`. */
static enum hw_status import(struct hw_device *device, uint64_t address, uint64_t offset,
                             uint64_t bytes)
{
    const struct hw_import desc = { .size = sizeof desc,
                                    .kind = cuda.memory,
                                    .handle = (void *)(uintptr_t)address,
                                    .offset = offset,
                                    .bytes = bytes };
    struct hw_buffer *buffer = NULL;
    const enum hw_status status = hw_buffer_import(device, &desc, &buffer);
    hw_buffer_free(buffer);
    return status;
}

static void memory_that_is_too_small_is_refused(void **state)
{
    const uint64_t most = UINT64_C(1) << 62;
    struct hw_context *context = load_open(&cuda);
    struct hw_device *device = hw_device_at(context, 0);
    const struct theirs theirs = allocate_on(0);
    (void)state;
    ok(import(device, theirs.address, 0, BYTES));
    ok(import(device, theirs.address + 100, 24, BYTES - 124));
    fails(
        HW_INVALID,
        "the memory has 1024 bytes up to the end of its allocation, which is less than 1025 "
        "at offset 0",
        import(device, theirs.address, 0, BYTES + 1));
    fails(HW_INVALID,
          "has 924 bytes up to the end of its allocation, which is less than 901 at "
          "offset 24",
          import(device, theirs.address + 100, 24, BYTES - 123));
    fails(HW_INVALID, "which is less than 1 at offset 4611686018427387904",
          import(device, theirs.address, most, 1));
    fails(HW_INVALID, "which is less than 4611686018427387904 at offset 1",
          import(device, theirs.address, 1, most));
    give_back(&theirs);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

static void memory_of_others_is_refused(void **state)
{
    struct hw_context *context = load_open(&cuda);
    struct hw_device *device = hw_device_at(context, 0);
    const struct theirs theirs = allocate_on(1);
    struct fake_memory pool = { .start = 1 << 20, .bytes = BYTES, .kind = 2, .device = 1 };
    (void)state;
    ok(import(hw_device_at(context, 1), theirs.address, 0, BYTES));
    fails(
        HW_INVALID,
        "the memory belongs to CUDA device 1, but this device is 0: import it on the device "
        "that owns it",
        import(device, theirs.address, 0, BYTES));
    fake_driver_know(&pool);
    fails(HW_INVALID, "belongs to CUDA device 1", import(device, pool.start, 0, BYTES));
    pool.context = context; /* any that is not the device's */
    pool.device = 0;
    fails(HW_INVALID,
          "the memory belongs to another context than the device's: allocate it in",
          import(device, pool.start, 0, BYTES));
    fake_driver_know(NULL);
    give_back(&theirs);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

/* Memory without an owner, and memory that the driver does not know. */
static void other_memory_is_imported(void **state)
{
    struct hw_context *context = load_open(&cuda);
    struct hw_device *device = hw_device_at(context, 0);
    const struct theirs theirs = allocate_on(0);
    const struct fake_memory some[] = {
        { .bytes = BYTES, .kind = 2 },                                  /* a pool's */
        { .bytes = BYTES, .kind = 1, .device = 1, .context = context }, /* the host's */
        { .bytes = BYTES, .kind = 2, .managed = 1, .device = 1, .context = context },
    };
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        struct fake_memory memory = some[i];
        memory.start = 1 << 20;
        fake_driver_know(&memory);
        ok(import(device, memory.start, 0, BYTES));
        fails(HW_INVALID, "which is less than 1025",
              import(device, memory.start, 0, BYTES + 1));
    }
    fake_driver_know(NULL);
    ok(import(device, 1 << 20, 0, BYTES));
    faults_arm("pointer_facts", 0, 201); /* CUDA_ERROR_INVALID_CONTEXT */
    ok(import(device, theirs.address, 0, BYTES + 1));
    faults_reset();
    faults_arm("pointer_facts", 0, 1);
    fails(HW_DRIVER, "cannot look up memory: invalid argument",
          import(device, theirs.address, 0, BYTES));
    faults_reset();
    give_back(&theirs);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
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

/* y += one, z = y by the application, y += z: each launch repeats the application's work at its
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
        cmocka_unit_test(memory_that_is_too_small_is_refused),
        cmocka_unit_test(memory_of_others_is_refused),
        cmocka_unit_test(other_memory_is_imported),
        cmocka_unit_test(graphs_have_the_applications_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
