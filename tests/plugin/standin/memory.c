/* SPDX-License-Identifier: MIT */
/* memory.c - buffers that come and go on a stand-in: see load.h. */
#include "load.h"

#include "faults.h"
#include "objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "answers.h"

enum { SLOTS = 1024 };

#define KB UINT64_C(1024)
#define MB (1024 * KB)

/* The same sequence in every run. */
static uint32_t next_random(void)
{
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Each power of two from 1 KiB to 8 MiB is equally likely. */
static uint64_t size_of_any_order(void)
{
    const uint64_t size = KB << next_random() % 14;
    const uint64_t whole = size + next_random() % size;
    return whole < 10 * MB ? whole : 10 * MB;
}

static uint64_t size_in_equal_parts(void)
{
    return KB + next_random() % (10 * MB - KB + 1);
}

static struct hw_pool_stats pool_stats(struct hw_device *device)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    ok(hw_pool_stats(device, &stats));
    return stats;
}

/* The test's use of the device: its buffers and their bytes. */
struct holding {
    struct hw_device *device;
    struct hw_buffer *buffers[SLOTS];
    uint64_t bytes, most;
};

static void let_go(struct holding *h, struct hw_buffer **slot)
{
    h->bytes -= hw_buffer_bytes(*slot);
    hw_buffer_free(*slot);
    *slot = NULL;
}

static void take(struct holding *h, struct hw_buffer **slot, uint64_t bytes)
{
    ok(hw_buffer_alloc(h->device, bytes, 0, slot));
    h->bytes += bytes;
    h->most = h->bytes > h->most ? h->bytes : h->most;
}

/* The vendor's allocations never exceed 1.1 times the peak use, except in the first `spare` bytes.
 * Hits do not reach the vendor; in the end everything is freed. */
static void come_and_go(const struct load_vendor *vendor, uint64_t (*random_size)(void))
{
    const uint64_t limit = 1024 * MB, spare = 36 * MB;
    struct hw_context *context = load_open(vendor);
    struct holding h = { .device = hw_device_at(context, 0) };
    const int steps = getenv("HW_TEST_QUICK") ? 3000 : 10000;
    for (int i = 0; i < steps;) {
        struct hw_buffer **slot = &h.buffers[next_random() % SLOTS];
        const uint64_t bytes = random_size();
        let_go(&h, slot);
        if (h.bytes + bytes > limit)
            continue;
        take(&h, slot, bytes);
        const uint64_t held = vendor->used(0);
        assert_true(held <= h.most + spare || held <= h.most / 10 * 11);
        i++;
    }
    const struct hw_pool_stats stats = pool_stats(h.device);
    assert_true(h.most > limit / 2);
    assert_true(stats.held <= h.most / 10 * 11);
    assert_int_equal(stats.held, vendor->used(0));
    assert_int_equal(stats.requests, steps);
    assert_int_equal(stats.requests - stats.hits, faults_count(vendor->alloc));
    assert_true(stats.hits > stats.requests / 4);
    for (int i = 0; i < SLOTS; i++)
        let_go(&h, &h.buffers[i]);
    ok(hw_pool_trim(h.device));
    assert_int_equal(vendor->used(0), 0);
    assert_int_equal(faults_count(vendor->free), faults_count(vendor->alloc));
    hw_close(context);
    assert_int_equal(objects_count(), 0);
}

void buffers_come_and_go(const struct load_vendor *vendor)
{
    come_and_go(vendor, size_of_any_order);
    come_and_go(vendor, size_in_equal_parts);
}

void sizes_that_repeat_are_hits(const struct load_vendor *vendor)
{
    static const uint64_t sizes[] = { 3 * MB, 5 * MB, 40 * KB, 7 * MB, 9 * MB };
    enum { COUNT_OF_SIZES = sizeof sizes / sizeof sizes[0] };
    struct hw_context *context = load_open(vendor);
    struct holding h = { .device = hw_device_at(context, 0) };
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < COUNT_OF_SIZES; k++) {
            take(&h, &h.buffers[0], sizes[k]);
            let_go(&h, &h.buffers[0]);
        }
    assert_int_equal(faults_count(vendor->alloc), COUNT_OF_SIZES);
    hw_close(context);
}
