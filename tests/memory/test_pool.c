/* SPDX-License-Identifier: MIT */
/* test_pool.c - the memory pool of a device: reuse without a driver call, merging,
 * limits, zeroed memory, order of reuse, imports. */
#include "world.h"

#define MB (UINT64_C(1) << 20)

static struct hw_pool_stats stats(struct hw_device *device)
{
    struct hw_pool_stats s = { .size = sizeof s };
    ok(hw_pool_stats(device, &s));
    return s;
}

static void freed_memory_is_used_again(void **state)
{
    struct world w;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    for (int i = 0; i < 100; i++) {
        ok(hw_buffer_alloc(w.near, 1000, 0, &b));
        assert_int_equal(hw_buffer_bytes(b), 1000);
        assert_ptr_equal(hw_buffer_device(b), w.near);
        assert_null(hw_buffer_host(b));
        hw_buffer_free(b);
    }
    const struct hw_pool_stats s = stats(w.near);
    assert_int_equal(s.requests, 100);
    assert_int_equal(s.hits, 99);
    assert_int_equal(s.used, 0);
    assert_int_equal(s.buffers, 0);
    assert_int_equal(s.peak, 1024);
    ok(hw_pool_trim(w.near));
    assert_int_equal(stats(w.near).held, 0);
    world_close(&w);
}

/* Adjacent free blocks merge in any order of freeing. */
static void blocks_split_and_join(void **state)
{
    static const int orders[][4] = {
        { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 0, 2, 1, 3 }
    };
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    for (size_t k = 0; k < 4; k++) {
        struct hw_buffer *b[4], *whole;
        for (int i = 0; i < 4; i++)
            ok(hw_buffer_alloc(w.near, 900 * 1024, 0, &b[i]));
        const uint64_t held = stats(w.near).held;
        for (int i = 0; i < 4; i++)
            hw_buffer_free(b[orders[k][i]]);
        ok(hw_buffer_alloc(w.near, 1000 * 1024, 0,
                           &whole)); /* larger than any of the four */
        assert_int_equal(stats(w.near).held, held);
        hw_buffer_free(whole);
    }
    world_close(&w);
}

static void buffers_do_not_overlap(void **state)
{
    struct world w;
    struct hw_tensor t[32];
    float value[8], got[8];
    (void)state;
    world_open(&w, NULL, NULL);
    for (int i = 0; i < 32; i++) {
        for (int k = 0; k < 8; k++)
            value[k] = (float)(8 * i + k);
        t[i] = put(w.on_near, value, 1, 8);
    }
    for (int i = 0; i < 32; i++) {
        get(w.on_near, &t[i], got);
        assert_true(got[0] == (float)(8 * i) && got[7] == (float)(8 * i + 7));
    }
    world_close(&w);
}

static void the_limit_counts_everything(void **state)
{
    struct world w;
    struct hw_buffer *a, *b, *c;
    (void)state;
    world_open(&w, NULL, "3M");
    ok(hw_buffer_alloc(w.near, 2 * MB, 0, &a));
    fails(HW_NO_MEMORY, "HW_MEMORY_LIMIT", hw_buffer_alloc(w.near, 2 * MB, 0, &b));
    assert_null(b);
    assert_non_null(strstr(hw_message(), "2 MiB requested; the limit is 3 MiB"));
    fails(HW_NO_MEMORY, "HW_MEMORY_LIMIT",
          hw_buffer_alloc(w.near, 2 * MB, HW_BUFFER_PINNED | HW_BUFFER_HOST_VISIBLE, &b));
    ok(hw_buffer_alloc(w.near, MB / 2, 0, &b));
    assert_int_equal(stats(w.near).limit, 3 * MB);
    assert_true(stats(w.near).held <= 3 * MB);
    /* Unused memory is released to make room. */
    hw_buffer_free(a);
    hw_buffer_free(b);
    ok(hw_buffer_alloc(w.near, 3 * MB, 0, &c));
    assert_true(stats(w.near).held <= 3 * MB);
    world_close(&w);
}

static void the_device_runs_out_of_memory(void **state)
{
    struct world w;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    fails(HW_NO_MEMORY, "in use", hw_buffer_alloc(w.near, 100 * MB, 0, &b));
    fails(HW_NO_MEMORY, "discrete:0", hw_buffer_alloc(w.near, UINT64_MAX, 0, &b));
    fails(HW_NO_MEMORY, "discrete:0", hw_buffer_alloc(w.near, UINT64_MAX / 2, 0, &b));
    ok(hw_buffer_alloc(w.near, 60 * MB, 0, &b));
    world_close(&w);
    world_open(&w, NULL, "200M");
    fails(HW_NO_MEMORY,
          "100 MiB requested, 0 bytes allocated by this process, the limit is 200 MiB: ",
          hw_buffer_alloc(w.near, 100 * MB, 0, &b));
    world_close(&w);
}

static void zeroed_means_zero(void **state)
{
    struct world w;
    float ones[256], got[256];
    (void)state;
    world_open(&w, NULL, NULL);
    for (int i = 0; i < 256; i++)
        ones[i] = 1.0f;
    for (int round = 0; round < 3; round++) {
        const int64_t extents[] = { 1, 256 };
        struct hw_tensor dirty = put(w.on_near, ones, 1, 256), clean;
        hw_buffer_free(dirty.buffer);
        ok(hw_tensor_alloc(w.near, HW_BUFFER_ZEROED, HW_F32, 2, extents, &clean));
        get(w.on_near, &clean, got);
        for (int i = 0; i < 256; i++)
            assert_true(got[i] == 0.0f);
        struct hw_tensor host = host_f32(ones, (int64_t)1, (int64_t)256, END);
        ok(copy_between(w.on_near, &clean, &host));
        ok(hw_queue_wait(w.on_near));
        hw_buffer_free(clean.buffer);
    }
    world_close(&w);
}

/* Repeated allocation does not increase the memory held, whether the host clears the memory
 * or the device has to allocate it anew. The memory is zero each time. */
static void zeroed_memory_is_not_hoarded(void **state)
{
    static const uint64_t sizes[] = { 1000, MB / 2, MB, 3 * MB };
    static const uint32_t flags[] = { 0, HW_BUFFER_PINNED | HW_BUFFER_HOST_VISIBLE };
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_device *const devices[] = { w.near, w.near, w.cpu };
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < 4; i++)
            for (int round = 0; round < 40; round++) {
                struct hw_buffer *b;
                ok(hw_buffer_alloc(devices[d], sizes[i], HW_BUFFER_ZEROED | flags[d % 2],
                                   &b));
                char *host = hw_buffer_host(b);
                assert_true(host || d == 0);
                for (uint64_t k = 0; host && k < sizes[i]; k += 100)
                    assert_int_equal(host[k], 0);
                if (host)
                    memset(host, 1, (size_t)sizes[i]);
                hw_buffer_free(b);
            }
    assert_true(stats(w.near).held <= 10 * MB);
    assert_true(stats(w.cpu).held <= 10 * MB);
    assert_true(stats(w.cpu).hits >= 140);
    world_close(&w);
    /* Memory that only the device can clear is returned to it. */
    world_open(&w, NULL, NULL);
    struct hw_buffer *b;
    ok(hw_buffer_alloc(w.near, 2 * MB, HW_BUFFER_ZEROED, &b));
    hw_buffer_free(b);
    assert_int_equal(stats(w.near).held, 0);
    world_close(&w);
}

static struct hw_buffer *alloc(struct hw_device *device, uint64_t bytes)
{
    struct hw_buffer *b;
    ok(hw_buffer_alloc(device, bytes, 0, &b));
    return b;
}

/* A large request takes a chunk that is larger by an eighth at most; another could not be
 * returned to the driver while a part of it is used. Only if there is no other memory, any free
 * memory will do. */
static void requests_do_not_split_much_larger_chunks(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, "40M");
    hw_buffer_free(alloc(w.near, 36 * MB));
    struct hw_buffer *little = alloc(w.near, 1 * MB);
    ok(hw_pool_trim(w.near));
    assert_int_equal(stats(w.near).held, 1 * MB);
    hw_buffer_free(little);
    hw_buffer_free(alloc(w.near, 36 * MB));
    alloc(w.near, 34 * MB);
    assert_int_equal(stats(w.near).held, 37 * MB);
    for (int i = 0; i < 2;
         i++) /* each has a chunk of its own: the rest of 2 MB is too large */
        alloc(w.near, 3 * MB / 2);
    assert_int_equal(stats(w.near).held, 40 * MB);
    alloc(w.near, 3 * MB / 2); /* now the rest is all that there is */
    assert_int_equal(stats(w.near).held, 39 * MB);
    assert_int_equal(stats(w.near).used, 34 * MB + 3 * (3 * MB / 2));
    world_close(&w);
}

/* Before the driver is asked for more, idle chunks are returned to it, the oldest first, until no
 * more than 32 MiB would be held beyond what was used at most. */
static void much_idle_memory_is_returned(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, NULL, NULL);
    hw_buffer_free(alloc(w.cpu, 30 * MB));
    hw_buffer_free(alloc(w.cpu, 40 * MB));
    assert_int_equal(stats(w.cpu).held, 70 * MB);
    hw_buffer_free(alloc(w.cpu, 50 * MB));
    assert_int_equal(stats(w.cpu).held, 50 * MB);
    hw_buffer_free(alloc(w.cpu, 20 * MB));
    assert_int_equal(stats(w.cpu).held, 70 * MB);
    world_close(&w);
}

/* A buffer freed in stream order is not given away before the queue has passed. */
static void buffers_are_freed_in_stream_order(void **state)
{
    struct world w;
    float x[4] = { 1, 2, 3, 4 }, other[4] = { 9, 9, 9, 9 }, got[4];
    const struct hw_arg slow = { .kind = HW_ARG_INT, .i = 30 };
    (void)state;
    world_open(&w, NULL, NULL);
    struct hw_tensor a = put(w.on_near, x, 1, 4), y = put(w.on_near, x, 1, 4);
    ok(hw_extension_call(w.on_near, "discrete.sleep", &slow, 1));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = y }));
    hw_buffer_free_after(a.buffer, w.on_near);
    struct hw_queue *second;
    ok(hw_queue_open(w.near, NULL, &second));
    put(second, other, 1, 4); /* would reuse the memory of `a` */
    get(w.on_near, &y, got);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 2.0f * x[i]);
    assert_int_equal(stats(w.near).buffers, 2);
    world_close(&w);
}

static enum hw_status import(struct hw_device *device, void *address, uint64_t bytes,
                             struct hw_buffer **buffer)
{
    const struct hw_import desc = {
        .size = sizeof desc, .kind = "host", .handle = address, .bytes = bytes
    };
    return hw_buffer_import(device, &desc, buffer);
}

/* Without a wait for the queue, events show which work has passed. */
static void events_release_memory(void **state)
{
    struct world w;
    struct hw_event *event;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_event_create(w.near, 0, &event));
    for (int i = 0; i < 200; i++) {
        ok(hw_buffer_alloc(w.near, 10 * MB, 0, &b));
        hw_buffer_free_after(b, w.on_near);
        ok(hw_event_record(event, w.on_near));
        ok(hw_event_sync(event));
    }
    assert_int_equal(stats(w.near).used, 0);
    assert_int_equal(stats(w.near).held, 10 * MB);
    /* A synchronous device frees the buffer at once. */
    ok(hw_buffer_alloc(w.cpu, MB, 0, &b));
    hw_buffer_free_after(b, w.on_cpu);
    assert_int_equal(stats(w.cpu).buffers, 0);
    world_close(&w);
}

/* Before an allocation fails, the pool waits for memory that any queue has yet to release. */
static void allocation_waits_for_pending_memory(void **state)
{
    struct world w;
    struct hw_queue *slow;
    struct hw_buffer *a, *b;
    const struct hw_arg time = { .kind = HW_ARG_INT, .i = 100 };
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_queue_open(w.near, NULL, &slow));
    for (int i = 0; i < 2; i++) { /* once into the same chunk, once into another one */
        ok(hw_buffer_alloc(w.near, 40 * MB, 0, &a));
        hold_sleepers();
        ok(hw_extension_call(slow, "discrete.sleep", &time, 1));
        hw_buffer_free_after(a, slow);
        assert_int_equal(stats(w.near).buffers, 1);
        release_sleepers();
        fails(HW_INVALID, "NULL", hw_buffer_alloc(w.near, 8, 0, NULL));
        ok(hw_buffer_alloc(w.near, (uint64_t)(40 + i) * MB, 0, &b));
        assert_non_null(strstr(hw_message(), "NULL")); /* nothing has failed since */
        assert_int_equal(stats(w.near).buffers, 1);
        hw_buffer_free(b);
    }
    /* The queue has pending work: closing it waits. */
    ok(hw_buffer_alloc(w.near, 40 * MB, 0, &a));
    hold_sleepers();
    ok(hw_extension_call(slow, "discrete.sleep", &time, 1));
    hw_buffer_free_after(a, slow);
    assert_int_equal(stats(w.near).buffers, 1);
    release_sleepers();
    hw_queue_close(slow);
    assert_int_equal(stats(w.near).buffers, 0);
    world_close(&w);
}

static int32_t no_event(void *device, uint32_t flags, void **event)
{
    (void)device, (void)flags, (void)event;
    return (int32_t)(fail)(HW_UNSUPPORTED, "no events here");
}

static int32_t never(void *event)
{
    (void)event;
    return HW_NOT_READY;
}

/* A wait releases memory if the plugin has no events, if its events never pass, or if the
 * memory is on another device. */
static void waits_release_memory_without_events(void **state)
{
    struct world w;
    struct hw_buffer *b;
    struct hw_event *event;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_event_create(w.near, 0, &event));
    for (int i = 0; i < 3; i++) {
        struct hw_device *device = i == 0 ? w.cpu : w.near;
        ok(hw_buffer_alloc(device, MB, 0, &b));
        if (i == 1)
            w.near->plugin->table.event_query = never;
        if (i == 2)
            w.near->plugin->table.event_create = no_event;
        fails(HW_INVALID, "NULL", hw_buffer_alloc(device, 8, 0, NULL));
        hw_buffer_free_after(b, w.on_near);
        assert_non_null(strstr(hw_message(), "NULL")); /* nothing has failed since */
        ok(hw_event_record(event, w.on_near));
        ok(hw_event_sync(event));
        assert_int_equal(stats(device).buffers, 1);
        ok(hw_queue_wait(w.on_near));
        assert_int_equal(stats(device).buffers, 0);
    }
    world_close(&w);
}

/* One device reports a larger alignment than the minimum, the others report none. */
static void buffers_are_as_the_device_says(void **state)
{
    struct world w;
    struct hw_buffer *b[2];
    struct hw_device_info info = { .size = sizeof info };
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_device_info(w.near, &info));
    assert_int_equal(info.buffer_alignment, 256);
    assert_int_equal(info.buffer_max, 0);
    info.size = sizeof info;
    ok(hw_device_info(w.far, &info));
    assert_int_equal(info.buffer_alignment, 512);
    assert_int_equal(info.buffer_max, 48 * MB);
    struct hw_device *const devices[] = { w.cpu, w.near, w.far };
    for (int d = 0; d < 3; d++) {
        const uint64_t step = d == 2 ? 512 : 256;
        for (int i = 0; i < 2; i++) {
            ok(hw_buffer_alloc(devices[d], 100, HW_BUFFER_HOST_VISIBLE, &b[i]));
            assert_int_equal(b[i]->offset % step, 0);
            assert_int_equal((uintptr_t)hw_buffer_host(b[i]) % step, 0);
        }
        assert_int_equal(stats(devices[d]).used, 2 * step);
        hw_buffer_free(b[0]);
        hw_buffer_free(b[1]);
    }
    ok(hw_buffer_alloc(w.near, 49 * MB, 0, &b[0]));
    ok(hw_buffer_alloc(w.far, 48 * MB, 0, &b[0]));
    hw_buffer_free(b[0]);
    fails(HW_NO_MEMORY, "largest", hw_buffer_alloc(w.far, 48 * MB + 1, 0, &b[0]));
    assert_null(b[0]);
    /* The chunk size for small requests is limited as well. */
    ok(hw_pool_trim(w.far));
    w.far->info.buffer_max = 2 * MB;
    ok(hw_buffer_alloc(w.far, 100, 0, &b[0]));
    assert_true(stats(w.far).held <= 2 * MB);
    world_close(&w);
}

static int32_t (*honest)(void *device, uint64_t bytes, uint32_t flags,
                         struct hw_buffer *buffer);

static int32_t without_address(void *device, uint64_t bytes, uint32_t flags,
                               struct hw_buffer *buffer)
{
    const int32_t status = honest(device, bytes, flags, buffer);
    buffer->host = NULL;
    return status;
}

static void host_addresses(void **state)
{
    struct world w;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_buffer_alloc(w.near, 100, 0, &b));
    assert_null(hw_buffer_host(b));
    ok(hw_buffer_alloc(w.near, 100, HW_BUFFER_PINNED, &b));
    assert_non_null(hw_buffer_host(b));
    ok(hw_buffer_alloc(w.cpu, 100, 0, &b));
    assert_non_null(hw_buffer_host(b));
    /* A plugin that returns no host address causes an error, and its memory is freed. */
    const uint64_t held = stats(w.near).held;
    honest = w.near->plugin->table.buffer_alloc;
    w.near->plugin->table.buffer_alloc = without_address;
    for (int i = 0; i < 100; i++)
        fails(HW_INTERNAL, "address",
              hw_buffer_alloc(w.near, 10 * MB, HW_BUFFER_HOST_VISIBLE, &b));
    assert_int_equal(stats(w.near).held, held);
    world_close(&w);
}

static int32_t misaligned(void *device, uint64_t bytes, uint32_t flags,
                          struct hw_buffer *buffer)
{
    const int32_t status = honest(device, bytes, flags, buffer);
    buffer->host = (char *)buffer->host + 24;
    return status;
}

/* The interface guarantees a multiple of 256. */
static void memory_is_aligned(void **state)
{
    struct world w;
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    const uint64_t held = stats(w.near).held;
    honest = w.near->plugin->table.buffer_alloc;
    w.near->plugin->table.buffer_alloc = misaligned;
    fails(HW_INTERNAL, "plugin discrete",
          hw_buffer_alloc(w.near, 10 * MB, HW_BUFFER_HOST_VISIBLE, &b));
    assert_non_null(strstr(hw_message(), "multiple of 256"));
    w.near->plugin->table.buffer_alloc = honest;
    assert_int_equal(stats(w.near).held, held);
    world_close(&w);
}

static void imported_memory_is_not_copied(void **state)
{
    struct world w;
    static _Alignas(64) float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct hw_buffer *b;
    struct hw_tensor t;
    const int64_t eight = 8;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(import(w.cpu, x, sizeof x, &b));
    ok(hw_tensor_view(&t, b, 0, HW_F32, 1, &eight));
    ok(hw_add(w.on_cpu, &(struct hw_add){ .a = t, .b = t, .y = t }));
    ok(hw_queue_wait(w.on_cpu));
    assert_true(x[7] == 16.0f);
    hw_buffer_free(b);
    assert_true(x[0] == 2.0f);
    fails(HW_UNSUPPORTED, "discrete:0", import(w.near, x, sizeof x, &b));
    fails(HW_INVALID, "multiple of 8", import(w.cpu, (char *)x + 1, 4, &b));
    fails(HW_INVALID, "address", import(w.cpu, NULL, 4, &b));
    assert_null(b);
    world_close(&w);
}

static struct hw_plugin honest_table;
static int freed;

static int32_t import_elsewhere(void *device, const struct hw_import *desc,
                                struct hw_buffer *buffer)
{
    const int32_t status = honest_table.buffer_import(device, desc, buffer);
    buffer->host = (char *)buffer->host + 4;
    return status;
}

static void count_free(void *device, struct hw_buffer *buffer)
{
    freed++;
    honest_table.buffer_free(device, buffer);
}

/* The memory is aligned, but the plugin says that it is elsewhere. */
static void imports_that_a_plugin_misplaces_are_refused(void **state)
{
    struct world w;
    static _Alignas(64) float x[8];
    struct hw_buffer *b;
    (void)state;
    world_open(&w, NULL, NULL);
    honest_table = w.cpu->plugin->table;
    w.cpu->plugin->table.buffer_import = import_elsewhere;
    w.cpu->plugin->table.buffer_free = count_free;
    freed = 0;
    fails(HW_INTERNAL, "hw_buffer_import on cpu:0: the plugin returned address",
          import(w.cpu, x, sizeof x, &b));
    assert_non_null(strstr(hw_message(), "not a multiple of 8"));
    assert_null(b);
    assert_int_equal(freed, 1);
    w.cpu->plugin->table = honest_table;
    world_close(&w);
}

static void wrong_arguments(void **state)
{
    struct world w;
    struct hw_buffer *b;
    struct hw_pool_stats s = { 0 };
    (void)state;
    world_open(&w, NULL, NULL);
    fails(HW_INVALID, "flags", hw_buffer_alloc(w.near, 8, 1u << 20, &b));
    fails(HW_INVALID, "mutually exclusive",
          hw_buffer_alloc(w.near, 8, HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY, &b));
    fails(HW_INVALID, "NULL", hw_buffer_alloc(NULL, 8, 0, &b));
    fails(HW_INVALID, "NULL", hw_buffer_alloc(w.near, 8, 0, NULL));
    fails(HW_INVALID, "size", hw_pool_stats(w.near, &s));
    fails(HW_INVALID, "NULL", hw_pool_trim(NULL));
    hw_buffer_free(NULL);
    hw_buffer_free_after(NULL, w.on_near);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_memory_is_used_again),
        cmocka_unit_test(blocks_split_and_join),
        cmocka_unit_test(buffers_do_not_overlap),
        cmocka_unit_test(the_limit_counts_everything),
        cmocka_unit_test(the_device_runs_out_of_memory),
        cmocka_unit_test(zeroed_means_zero),
        cmocka_unit_test(zeroed_memory_is_not_hoarded),
        cmocka_unit_test(requests_do_not_split_much_larger_chunks),
        cmocka_unit_test(much_idle_memory_is_returned),
        cmocka_unit_test(buffers_are_freed_in_stream_order),
        cmocka_unit_test(events_release_memory),
        cmocka_unit_test(allocation_waits_for_pending_memory),
        cmocka_unit_test(waits_release_memory_without_events),
        cmocka_unit_test(buffers_are_as_the_device_says),
        cmocka_unit_test(host_addresses),
        cmocka_unit_test(memory_is_aligned),
        cmocka_unit_test(imported_memory_is_not_copied),
        cmocka_unit_test(imports_that_a_plugin_misplaces_are_refused),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
