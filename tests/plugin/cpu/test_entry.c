/* SPDX-License-Identifier: MIT */
/* test_entry.c - the CPU plugin's side of the ABI: negotiation, facts, memory, events. */
#define _GNU_SOURCE /* mincore, mallopt */
#include "harness.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static void table_is_filled(void **state)
{
    struct harness h;
    (void)state;
    harness_host(&h, "", 0);
    assert_int_equal(harness_entry()(&h.host, &h.plugin), HW_OK);
    assert_int_equal(h.plugin.size, sizeof h.plugin);
    assert_int_equal(h.plugin.abi, HW_ABI_VERSION);
    assert_string_equal(h.plugin.name, "cpu");
    assert_int_equal(h.plugin.op_count, HW_OP_COUNT);
    assert_int_equal(h.plugin.op_sizes[HW_OP_ROPE], sizeof(struct hw_rope));
#define X(NAME, name) assert_non_null(h.plugin.ops->name);
    HW_OPS(X)
#undef X
}

/* An older host has a shorter table. */
static void table_is_cut(void **state)
{
    struct harness h;
    (void)state;
    harness_host(&h, "", 0);
    memset(&h.plugin, 0xa5, sizeof h.plugin);
    h.plugin.size = offsetof(struct hw_plugin, graph_build);
    assert_int_equal(harness_entry()(&h.host, &h.plugin), HW_OK);
    assert_int_equal(h.plugin.size, offsetof(struct hw_plugin, graph_build));
    for (size_t i = offsetof(struct hw_plugin, graph_build); i < sizeof h.plugin; i++)
        assert_int_equal(((unsigned char *)&h.plugin)[i], 0xa5);
}

static void versions_that_do_not_meet(void **state)
{
    struct harness h;
    (void)state;
    harness_host(&h, "", 0);
    h.host.abi_min = h.host.abi_max = HW_ABI_VERSION + 1;
    assert_int_equal(harness_entry()(&h.host, &h.plugin), HW_ABI);
    assert_non_null(strstr(h.message, "cpu"));
    assert_null(h.plugin.open);
}

static void facts(void **state)
{
    struct harness h;
    int32_t count = 0;
    (void)state;
    harness_open(&h, "", 0);
    assert_int_equal(h.plugin.device_count(h.self, &count), HW_OK);
    assert_int_equal(count, 1);
    struct hw_device_info info = { .size = sizeof info };
    assert_int_equal(h.plugin.device_info(h.self, 0, &info), HW_OK);
    assert_int_equal(info.kind, HW_DEVICE_CPU);
    assert_true(info.units >= 1);
    assert_true(info.memory_free <= info.memory_total);
    assert_int_equal(info.pci_bus, -1);
    assert_int_equal(info.has_uuid, 0);
    assert_true(info.features & HW_FEATURE_HOST_TENSORS);
    assert_true(info.features & HW_FEATURE_UNIFIED_MEMORY);
    assert_true(info.arch[0]);

    /* The plugin must not write past the end of an older host's struct. */
    struct hw_device_info cut = { .size = offsetof(struct hw_device_info, driver),
                                  .driver = "x" };
    assert_int_equal(h.plugin.device_info(h.self, 0, &cut), HW_OK);
    assert_string_equal(cut.driver, "x");
    assert_string_equal(cut.name, info.name);

    void *device;
    assert_int_equal(h.plugin.device_info(h.self, 1, &info), HW_NO_DEVICE);
    assert_int_equal(h.plugin.device_open(h.self, -1, &device), HW_NO_DEVICE);
    assert_non_null(strstr(h.log, "processors"));
    harness_close(&h);
}

/* The limits on threads are read once, when an op is first worth a second thread. */
static void threads_are_counted_when_needed(void **state)
{
    enum { FEW = 64, MANY = 1 << 20 };
    struct harness h;
    (void)state;
    float *x = calloc(MANY, sizeof *x);
    assert_non_null(x);
    harness_open(&h, "", 0);
    const bool known = strstr(h.log, "up to 1 threads") != NULL; /* one processor */
    const struct hw_silu few = { .x = TENSOR(x, HW_F32, FEW), .y = TENSOR(x, HW_F32, FEW) },
                         many = { .x = TENSOR(x, HW_F32, MANY),
                                  .y = TENSOR(x, HW_F32, MANY) };
    assert_int_equal(h.plugin.ops->silu(h.device, h.queue, &few), HW_OK);
    assert_true(known || !strstr(h.log, "threads"));
    assert_int_equal(h.plugin.ops->silu(h.device, h.queue, &many), HW_OK);
    const char *first = strstr(h.log, "up to ");
    assert_non_null(first);
    assert_int_equal(h.plugin.ops->silu(h.device, h.queue, &many), HW_OK);
    assert_null(strstr(first + 1, "up to "));
    harness_close(&h);
    free(x);
}

/* An explicit number of threads needs no limits. */
static void threads_that_are_given_are_not_counted(void **state)
{
    struct harness h;
    (void)state;
    harness_open(&h, "", 3);
    assert_non_null(strstr(h.log, "up to 3 threads"));
    harness_close(&h);
}

/* HW_KERNEL may name a row of another device, so this device still opens. A queue that asks for
 * such a row is rejected. */
static void wrong_kernel_refuses_the_queue(void **state)
{
    struct harness h;
    struct hw_queue_desc desc = { .size = sizeof desc, .kernel = "no_such_row" };
    void *queue;
    (void)state;
    harness_host(&h, "no_such_row", 0);
    assert_int_equal(harness_entry()(&h.host, &h.plugin), HW_OK);
    assert_int_equal(h.plugin.open(&h.host, &h.self), HW_OK);
    assert_int_equal(h.plugin.device_open(h.self, 0, &h.device), HW_OK);
    assert_int_equal(h.plugin.queue_open(h.device, &desc, &queue), HW_INVALID);
    assert_non_null(strstr(h.message, "no_such_row"));
    h.plugin.device_close(h.device);
    h.plugin.close(h.self);
}

static void memory(void **state)
{
    static const uint64_t sizes[] = { 1, 255, 4096, (4u << 20) + 3 };
    struct harness h;
    char arena[] = "........from here to there", *const text = arena + 8;
    char back[sizeof arena - 8] = "";
    (void)state;
    harness_open(&h, "", 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hw_buffer buffer = { 0 };
        assert_int_equal(
            h.plugin.buffer_alloc(h.device, sizes[i], HW_BUFFER_ZEROED, &buffer), HW_OK);
        assert_int_equal((uintptr_t)buffer.host % 256, 0);
        assert_true(buffer.flags & HW_BUFFER_HOST_VISIBLE);
        for (uint64_t k = 0; k < sizes[i]; k++)
            assert_int_equal(((char *)buffer.host)[k], 0);
        memset(buffer.host, 1, sizes[i]);
        h.plugin.buffer_free(h.device, &buffer);
    }
    struct hw_buffer buffer = { 0 }, imported = { 0 };
    assert_int_equal(h.plugin.buffer_alloc(h.device, UINT64_MAX - 5, 0, &buffer),
                     HW_NO_MEMORY);
    assert_non_null(strstr(h.message, "free"));
    assert_int_equal(h.plugin.buffer_alloc(h.device, 64, 0, &buffer), HW_OK);
    struct hw_import desc = { .size = sizeof desc,
                              .kind = "cuda.memory",
                              .handle = arena,
                              .offset = 8,
                              .bytes = sizeof back };
    assert_int_equal(h.plugin.buffer_import(h.device, &desc, &imported), HW_UNSUPPORTED);
    assert_non_null(strstr(h.message, "cuda.memory"));
    desc.kind = "host";
    assert_int_equal(h.plugin.buffer_import(h.device, &desc, &imported), HW_OK);
    assert_ptr_equal(imported.host, text);
    const struct hw_transfer in = { .size = sizeof in,
                                    .dst = &buffer,
                                    .dst_offset = 3,
                                    .src = &imported,
                                    .bytes = sizeof back };
    const struct hw_transfer out = { .size = sizeof out,
                                     .dst_host = back,
                                     .src = &buffer,
                                     .src_offset = 3,
                                     .bytes = sizeof back };
    assert_int_equal(h.plugin.transfer(h.queue, &in), HW_OK);
    assert_int_equal(h.plugin.transfer(h.queue, &out), HW_OK);
    assert_string_equal(back, text);
    /* Every second byte of the text. */
    const struct hw_transfer rows = { .size = sizeof rows,
                                      .dst_host = back,
                                      .src = &imported,
                                      .bytes = 1,
                                      .rows = 3,
                                      .dst_pitch = 1,
                                      .src_pitch = 2 };
    assert_int_equal(h.plugin.transfer(h.queue, &rows), HW_OK);
    assert_true(back[0] == text[0] && back[1] == text[2] && back[2] == text[4]);
    assert_string_equal(back + 3, text + 3);
    h.plugin.buffer_free(h.device, &imported);
    h.plugin.buffer_free(h.device, &buffer);
    harness_close(&h);
}

#if defined(__GLIBC__)
/* Pages that were touched before could not become huge pages. */
static void large_memory_is_on_new_pages(void **state)
{
    enum { BYTES = 8 << 20, PAGE = 4096 };
    unsigned char there[BYTES / PAGE] = { 0 };
    struct harness h;
    struct hw_buffer buffer = { 0 };
    (void)state;
    /* Makes glibc reuse freed memory; a sanitizer's allocator has no such settings. */
    if (!mallopt(M_MMAP_THRESHOLD, 32 << 20) || !mallopt(M_TRIM_THRESHOLD, 64 << 20)) {
        print_message("# not applicable: the memory is not that of glibc\n");
        return;
    }
    harness_open(&h, "", 0);
    volatile char *before = malloc(3 * BYTES); /* else compilers see that nobody reads it */
    char *barrier = malloc(1);
    assert_non_null(before);
    for (int i = 0; i < 3 * BYTES; i += PAGE)
        before[i] = 1;
    free((void *)before);
    assert_int_equal(h.plugin.buffer_alloc(h.device, BYTES, 0, &buffer), HW_OK);
    const bool known = sysconf(_SC_PAGESIZE) == PAGE &&
                       madvise(buffer.host, BYTES, MADV_HUGEPAGE) == 0 &&
                       mincore(buffer.host, BYTES, there) == 0;
    for (int i = 0; i < BYTES / PAGE && known; i++)
        assert_false(there[i] & 1);
    h.plugin.buffer_free(h.device, &buffer);
    free(barrier);
    harness_close(&h);
    if (!known)
        print_message("# not applicable: the system has no huge pages\n");
}
#endif

/* Unknown fields are rejected unless they are zero. */
static void what_is_newer_is_refused(void **state)
{
    struct harness h;
    void *made;
    char x[8] = "abcdefg", y[8] = "";
    struct {
        struct hw_queue_desc desc;
        unsigned char more[8];
    } queue = { .desc = { .size = sizeof queue } };
    struct {
        struct hw_import desc;
        unsigned char more[8];
    } import = { .desc = {
                     .size = sizeof import, .kind = "host", .handle = x, .bytes = 8 } };
    struct {
        struct hw_transfer desc;
        unsigned char more[8];
    } transfer = {
        .desc = { .size = sizeof transfer, .dst_host = y, .src_host = x, .bytes = 8 }
    };
    struct hw_buffer buffer = { 0 };
    (void)state;
    harness_open(&h, "", 0);
    assert_int_equal(h.plugin.queue_open(h.device, &queue.desc, &made), HW_OK);
    h.plugin.queue_close(made);
    queue.more[7] = 1;
    assert_int_equal(h.plugin.queue_open(h.device, &queue.desc, &made), HW_UNSUPPORTED);
    queue.more[7] = 0;
    queue.desc.flags = 1u << 31;
    assert_int_equal(h.plugin.queue_open(h.device, &queue.desc, &made), HW_UNSUPPORTED);
    assert_non_null(strstr(h.message, "update the plugin"));
    assert_int_equal(h.plugin.buffer_import(h.device, &import.desc, &buffer), HW_OK);
    h.plugin.buffer_free(h.device, &buffer);
    import.more[0] = 1;
    assert_int_equal(h.plugin.buffer_import(h.device, &import.desc, &buffer),
                     HW_UNSUPPORTED);
    import.more[0] = 0;
    import.desc.flags = HW_BUFFER_ZEROED;
    assert_int_equal(h.plugin.buffer_import(h.device, &import.desc, &buffer),
                     HW_UNSUPPORTED);
    transfer.more[3] = 1;
    assert_int_equal(h.plugin.transfer(h.queue, &transfer.desc), HW_UNSUPPORTED);
    assert_string_equal(y, "");
    transfer.more[3] = 0;
    assert_int_equal(h.plugin.transfer(h.queue, &transfer.desc), HW_OK);
    assert_string_equal(y, x);
    assert_int_equal(h.plugin.buffer_alloc(h.device, 8, 1u << 31, &buffer), HW_UNSUPPORTED);
    assert_int_equal(h.plugin.event_create(h.device, 2, &made), HW_UNSUPPORTED);
    harness_close(&h);
}

static void count_call(void *user)
{
    ++*(int *)user;
}

static void events(void **state)
{
    struct harness h;
    void *start, *end;
    double ms = -1.0;
    int calls = 0;
    (void)state;
    harness_open(&h, "", 0);
    assert_int_equal(h.plugin.event_create(h.device, HW_EVENT_TIMING, &start), HW_OK);
    assert_int_equal(h.plugin.event_create(h.device, HW_EVENT_TIMING, &end), HW_OK);
    assert_int_equal(h.plugin.event_elapsed(start, end, &ms), HW_INVALID);
    assert_int_equal(h.plugin.event_record(start, h.queue), HW_OK);
    assert_int_equal(h.plugin.event_record(end, h.queue), HW_OK);
    assert_int_equal(h.plugin.event_query(end), HW_OK);
    assert_int_equal(h.plugin.event_sync(end), HW_OK);
    assert_int_equal(h.plugin.event_wait(h.queue, end), HW_OK);
    assert_int_equal(h.plugin.event_elapsed(start, end, &ms), HW_OK);
    assert_true(ms >= 0.0);
    assert_int_equal(h.plugin.event_callback(end, count_call, &calls), HW_OK);
    assert_int_equal(calls, 1);
    h.plugin.event_destroy(start);
    h.plugin.event_destroy(end);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_filled),
        cmocka_unit_test(table_is_cut),
        cmocka_unit_test(versions_that_do_not_meet),
        cmocka_unit_test(facts),
        cmocka_unit_test(threads_are_counted_when_needed),
        cmocka_unit_test(threads_that_are_given_are_not_counted),
        cmocka_unit_test(wrong_kernel_refuses_the_queue),
        cmocka_unit_test(memory),
#if defined(__GLIBC__)
        cmocka_unit_test(large_memory_is_on_new_pages),
#endif
        cmocka_unit_test(what_is_newer_is_refused),
        cmocka_unit_test(events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
