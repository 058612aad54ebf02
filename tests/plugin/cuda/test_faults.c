/* SPDX-License-Identifier: MIT */
/* test_faults.c - the CUDA plugin on a stand-in for the driver, where each call of each function of
 * cuda.def fails once: the application gets an error, nothing leaks or hangs, and the other device
 * still works. */
#include "../standin/walk.h"
#include "fake.h"
#include "fake_driver.h"
#include "faults.h"
#include "objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { OUT_OF_MEMORY = 2 };

/* A kernel of the application. */
static void launch(struct walk *w, struct hw_queue *queue)
{
    static const char ptx[] =
        ".version 6.0\n.target sm_50\n.visible .entry nothing(\n)\n{\n    ret;\n}\n";
    const struct hw_user_kernel desc = { .size = sizeof desc,
                                         .group = 32,
                                         .name = "nothing",
                                         .signature = "",
                                         .blob = ptx,
                                         .blob_bytes = sizeof ptx };
    struct hw_kernel *kernel = NULL;
    TRY(hw_kernel_create(w->device, &desc, &kernel));
    TRY(hw_kernel_launch(queue, kernel, 1, NULL, 0));
    TRY(hw_queue_wait(queue));
    hw_kernel_free(kernel);
}

/* The stand-in's own functions are not counted and do not fail. */
static void import(struct walk *w)
{
    enum { COUNT = 64 };
    static float x[COUNT];
    void *context = NULL, *stream = NULL;
    struct hw_queue *queue = NULL;
    struct hw_buffer *host = NULL, *theirs = NULL;
    struct hw_import desc = {
        .size = sizeof desc, .kind = "host", .handle = x, .bytes = sizeof x
    };
    struct hw_device_info info = { .size = sizeof info };
    TRY(hw_device_info(w->device, &info));
    const int device = info.pci_bus > 0 ? info.pci_bus - 1 : w->index;
    uint64_t address = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = 1.0f;
    if (fake_context_retain(&context, device) || fake_context_push(context) ||
        fake_memory_alloc(&address, sizeof x) || fake_stream_create(&stream, 0))
        fail_msg("the stand-in does not work");
    TRY(hw_buffer_import(w->device, &desc, &host));
    desc.kind = "cuda.memory";
    desc.handle = (void *)(uintptr_t)address;
    TRY(hw_buffer_import(w->device, &desc, &theirs));
    TRY(hw_queue_import(w->device, NULL, "cuda.stream", stream, &queue));
    TRY(hw_scale(queue, &(struct hw_scale){ .x = hw_view_1d(host, 0, HW_F32, COUNT),
                                            .y = hw_view_1d(theirs, 0, HW_F32, COUNT),
                                            .scale = 3.0f }));
    TRY(hw_copy(queue, &(struct hw_copy){ .src = hw_view_1d(theirs, 0, HW_F32, COUNT),
                                          .dst = hw_view_1d(host, 0, HW_F32, COUNT) }));
    TRY(hw_queue_wait(queue));
    launch(w, queue);
    hw_queue_close(queue);
    hw_buffer_free(theirs);
    hw_buffer_free(host);
    assert_true(w->status || x[COUNT - 1] == 3.0f);
    fake_stream_destroy(stream);
    fake_memory_free(address);
    fake_context_pop(&context);
    fake_context_release(device);
    assert_int_equal(fake_driver_depth(), 0);
}

/* Facts that cannot be read stay empty. An error of function_parameter marks the end of a kernel's
 * parameters. A function that find_function does not find is taken from the library's exports. */
static const char *const facts[] = {
    "find_function",    "device_name",        "device_uuid", "device_memory",
    "device_attribute", "function_parameter", NULL
};

static const struct vendor cuda = {
    .backend = "cuda",
    .error = { 1, "CUDA_ERROR_INVALID_VALUE" },
    .fatal = { 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
    .first_on_a_device = "context_wait",
    .quiet = facts,
    .leaky = "context_push",
    .visible_memory = true,
    .graphs = true,
    .import = import,
    .living = objects_count,
};

static struct walk walk;

static void open_device(void **state)
{
    (void)state;
    faults_reset();
    walk_open(&walk, &cuda);
    assert_int_equal(walk.status, HW_OK);
    assert_int_equal(hw_device_find(walk.context, "cuda:0", &walk.device), HW_OK);
}

static void says(enum hw_status wanted, enum hw_status status, const char *words)
{
    if (status != wanted || !strstr(hw_message(), words))
        fail_msg("%s, not %s: %s", hw_status_name((int32_t)status), words, hw_message());
}

static void out_of_memory_has_the_sizes(void **state)
{
    const uint64_t most = FAKE_DRIVER_MEMORY / 4 * 3;
    struct hw_buffer *first, *second;
    open_device(state);
    says(HW_OK, hw_buffer_alloc(walk.device, most, 0, &first), "");
    says(
        HW_NO_MEMORY, hw_buffer_alloc(walk.device, most, 0, &second),
        "cuda:0: 3 GiB requested, 3 GiB allocated by this process: cannot allocate 3221225472 "
        "bytes of device memory, of which 1073741824 of 4294967296 are free: out of memory "
        "(CUDA_ERROR_OUT_OF_MEMORY, 2)");
    hw_buffer_free(first);
    says(HW_OK, hw_buffer_alloc(walk.device, most, 0, &second), "");
    faults_arm("memory_alloc", 0, OUT_OF_MEMORY);
    faults_arm("memory_info", 0, OUT_OF_MEMORY);
    says(HW_NO_MEMORY, hw_buffer_alloc(walk.device, 1, 0, &first),
         "cannot allocate 256 bytes of device memory: out of memory");
    walk_close(&walk);
}

/* Large pinned memory is allocated from the operating system in huge pages. If the driver cannot
 * pin those, it allocates the memory itself. */
static void large_pinned_memory_has_huge_pages(void **state)
{
    enum { LARGE = 5 << 20, LARGER = 40 << 20, UNSUPPORTED = 801, LOST = 719 };
    struct hw_buffer *large, *own, *none;
    open_device(state);
    faults_reset();
    says(HW_OK, hw_buffer_alloc(walk.device, LARGE, HW_BUFFER_PINNED, &large), "");
    assert_int_equal((uintptr_t)hw_buffer_host(large) % (2 << 20), 0);
    memset(hw_buffer_host(large), 1, LARGE);
    assert_int_equal(faults_count("host_register"), 1);
    assert_int_equal(faults_count("host_alloc"), 0);
    faults_arm("host_register", 0, UNSUPPORTED);
    says(HW_OK, hw_buffer_alloc(walk.device, LARGE, HW_BUFFER_PINNED, &own), "");
    assert_int_equal(faults_count("host_alloc"), 1);
    hw_buffer_free(own);
    hw_buffer_free(large);
    faults_reset();
    faults_arm("host_register", 0, LOST);
    says(HW_LOST, hw_buffer_alloc(walk.device, LARGER, HW_BUFFER_PINNED, &none),
         "pin huge pages");
    walk_close(&walk);
}

/* Memory that cannot be unpinned stays mapped: the driver would treat the next mapping there as
 * pinned. */
static void memory_that_stays_pinned_is_not_unmapped(void **state)
{
    enum { LARGE = 5 << 20 };
    struct hw_buffer *large;
    open_device(state);
    says(HW_OK, hw_buffer_alloc(walk.device, LARGE, HW_BUFFER_PINNED, &large), "");
    char *memory = hw_buffer_host(large);
    memory[0] = 1;
    hw_buffer_free(large);
    faults_reset();
    faults_arm("host_unregister", 0, OUT_OF_MEMORY);
    walk_close(&walk);
    faults_reset();
    assert_int_equal(memory[0], 1);
    munmap(memory, LARGE);
}

static void errors_without_a_name_have_a_number(void **state)
{
    enum { UNHEARD_OF = 4321 };
    struct hw_buffer *buffer;
    open_device(state);
    faults_arm("memory_alloc", 0, UNHEARD_OF);
    says(HW_DRIVER, hw_buffer_alloc(walk.device, 1, 0, &buffer),
         "no description (an error that this driver cannot name, 4321)");
    walk_close(&walk);
}

/* y = silu(x) on the CPU. */
static void compute_on_the_cpu(const char *backends)
{
    const struct hw_options options = { .size = sizeof options, .backends = backends };
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
    float x[16] = { 1 }, y[16];
    says(HW_OK, hw_open(&options, &context), "");
    says(HW_OK, hw_device_find(context, "cpu", &device), "");
    says(HW_OK, hw_queue_open(device, NULL, &queue), "");
    says(HW_OK,
         hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 16),
                                           .y = hw_host_1d(y, HW_F32, 16) }),
         "");
    says(HW_OK, hw_queue_wait(queue), "");
    assert_true(walk_is_silu(y, x, 16));
    hw_close(context);
}

static void the_cpu_needs_no_context(void **state)
{
    (void)state;
    faults_reset();
    compute_on_the_cpu("cuda?,*"); /* by name: there is no such hardware */
    assert_int_equal(faults_count("device_count"), 1);
    assert_int_equal(faults_count("context_retain"), 0);
    faults_reset();
    compute_on_the_cpu("cpu");
    assert_int_equal(faults_count("init"), 0);
}

/* All functions that cuda.def lists are found. */
static void functions_are_found_by_their_version(void **state)
{
    enum {
        LISTED = 0
#define REQUIRED(result, name, arguments, names) +1
#define OPTIONAL(result, name, arguments, names) +1
#include "cuda.def"
    };
    const unsigned before = fake_driver_found();
    open_device(state);
    assert_int_equal(faults_count("find_function"), LISTED);
    assert_int_equal(fake_driver_found() - before, LISTED);
    walk_close(&walk);
}

static void every_call(void **state)
{
    (void)state;
    every_call_fails_once(&cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call),
        cmocka_unit_test(functions_are_found_by_their_version),
        cmocka_unit_test(out_of_memory_has_the_sizes),
        cmocka_unit_test(large_pinned_memory_has_huge_pages),
        cmocka_unit_test(memory_that_stays_pinned_is_not_unmapped),
        cmocka_unit_test(errors_without_a_name_have_a_number),
        cmocka_unit_test(the_cpu_needs_no_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
