/* SPDX-License-Identifier: MIT */
/* test_channel.c - the library's side of a ring, when the other side writes what it likes: nothing
 * outside the ring is touched, a wait ends, and a reply is one that the library can use. */
#define _GNU_SOURCE
/* Before cmocka, which has a macro of the name of one of its functions. */
#include "worker/channel.h"

#include "base/platform.h"
#include "worker/sleep.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { GUARD = 4096, TURNS = 4000 };

/* A channel between guard bytes. */
struct fixture {
    unsigned char *memory;
    struct channel channel;
    _Atomic uint32_t ended;
};

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

static struct fixture make(void)
{
    const size_t whole = sizeof(struct wire_channel) + 2 * GUARD;
    struct fixture made = { .memory = aligned_alloc(GUARD,
                                                    (whole + GUARD - 1) / GUARD * GUARD) };
    assert_non_null(made.memory);
    memset(made.memory, 0xa5, whole);
    made.channel.wire = (struct wire_channel *)(void *)(made.memory + GUARD);
    memset(made.channel.wire, 0, sizeof *made.channel.wire);
    return made;
}

static void check_guards(const struct fixture *fixture)
{
    const unsigned char *behind = fixture->memory + GUARD + sizeof(struct wire_channel);
    for (int i = 0; i < GUARD; i++)
        assert_true(fixture->memory[i] == 0xa5 && behind[i] == 0xa5);
}

static int looks;

/* The worker has ended when the library has looked a few times. */
static bool look(struct worker *worker)
{
    (void)worker;
    return ++looks > 1;
}

/* ---- a wild worker ---- */

static uint32_t wild_word(uint32_t *seed, const struct channel *channel)
{
    const uint32_t word = next_random(seed), near = word >> 8 & 15;
    const uint32_t tail = (uint32_t)channel->pushed;
    switch (word & 7) {
    case 0:
        return tail;
    case 1:
        return tail + near;
    case 2:
        return tail - near;
    case 3:
        return tail - WIRE_UNITS - near;
    case 4:
        return tail - WIRE_UNITS + near;
    default:
        return next_random(seed);
    }
}

/* Calls of all sizes, with positions that make sense and others, and a ring full of garbage. */
static void test_wild(void **state)
{
    struct fixture f = make();
    struct wire_channel *wire = f.channel.wire;
    uint32_t seed = 1, good = 0, wild = 0;
    (void)state;
    f.channel.ended = &f.ended;
    for (int turn = 0; turn < TURNS; turn++) {
        enum channel_fault fault;
        const uint32_t bytes = next_random(&seed) % (WIRE_RING / 4);
        const uint64_t before = f.channel.pushed;
        looks = 1; /* so that no wait is long */
        atomic_store(&wire->head, wild_word(&seed, &f.channel));
        unsigned char *at = channel_begin(&f.channel, WIRE_OP, bytes, 0, look, &fault);
        if (!at) {
            assert_int_not_equal(fault, CHANNEL_GOOD);
            wild += fault == CHANNEL_WILD;
            f.channel.pushed = before;
            continue;
        }
        assert_true(at > wire->ring && at + bytes <= wire->ring + WIRE_RING);
        memset(at, (int)next_random(&seed), bytes);
        /* The library does not use a size that the worker has overwritten. */
        memset(at - sizeof(struct wire_record), 0xff, sizeof(struct wire_record));
        channel_push(&f.channel, true);
        assert_true(f.channel.pushed - before <= WIRE_UNITS);
        good++;
    }
    assert_true(good > TURNS / 100 && wild > TURNS / 10); /* the test is one */
    check_guards(&f);
    free(f.memory);
}

static void test_wait(void **state)
{
    struct fixture f = make();
    enum channel_fault fault;
    (void)state;
    f.channel.ended = &f.ended;
    f.channel.pushed = UINT64_C(0xffffffff0); /* positions wrap */
    atomic_store(&f.channel.wire->head, (uint32_t)f.channel.pushed);
    looks = 0;
    assert_non_null(channel_begin(&f.channel, WIRE_WAIT, 0, 0, look, &fault));
    channel_push(&f.channel, true);
    const uint64_t position = f.channel.pushed;
    assert_false(channel_passed(&f.channel, position));
    assert_int_equal(channel_wait(&f.channel, 0, look), CHANNEL_ENDED);
    atomic_store(&f.channel.wire->head, (uint32_t)position);
    assert_int_equal(channel_wait(&f.channel, 0, look), CHANNEL_GOOD);
    assert_true(channel_passed(&f.channel, position));
    /* Ahead of the library, and far behind it. */
    atomic_store(&f.channel.wire->head, (uint32_t)position + 1);
    assert_int_equal(channel_wait(&f.channel, 0, look), CHANNEL_WILD);
    assert_false(channel_passed(&f.channel, position));
    atomic_store(&f.channel.wire->head, (uint32_t)position - WIRE_UNITS - 1);
    assert_int_equal(channel_wait(&f.channel, 0, look), CHANNEL_WILD);
    free(f.memory);
}

/* ---- any thread's wait ---- */

static struct wire_channel *moving;

/* The worker comes to the end just before the library sleeps, and sees nobody to wake. */
static bool move(struct worker *worker)
{
    (void)worker;
    atomic_store(&moving->head, atomic_load(&moving->tail));
    return false;
}

static void test_await(void **state)
{
    struct fixture f = make();
    struct wire_channel *wire = moving = f.channel.wire;
    enum channel_fault fault;
    uint64_t best = UINT64_MAX;
    (void)state;
    f.channel.ended = &f.ended;
    for (int turn = 0; turn < 1000 && best >= 50000; turn++) {
        assert_non_null(channel_begin(&f.channel, WIRE_WAIT, 0, 0, look, &fault));
        channel_push(&f.channel, false);
        const uint64_t start = microseconds_now();
        assert_int_equal(channel_await(&f.channel, f.channel.pushed, move), CHANNEL_GOOD);
        const uint64_t took = microseconds_now() - start;
        best = took < best ? took : best;
    }
    assert_true(best < 50000); /* it never slept, which takes at least twice as long */
    atomic_store(&wire->head, (uint32_t)f.channel.pushed + 1);
    assert_true(channel_is_wild(&f.channel));
    assert_int_equal(channel_await(&f.channel, f.channel.pushed, move), CHANNEL_WILD);
    free(f.memory);
}

enum { LONG = 60000000 }; /* microseconds */

static void *sleep_as_worker(void *of)
{
    struct wire_channel *wire = of;
    while (atomic_load(&wire->worker_sleeps))
        sleep_on(&wire->worker_sleeps, 1, LONG);
    return NULL;
}

/* The worker sleeps until the library clears the word, whatever the tail. */
static void test_wakes(void **state)
{
    struct fixture f = make();
    const uint64_t start = microseconds_now();
    enum channel_fault fault;
    pthread_t worker;
    (void)state;
    f.channel.ended = &f.ended;
    for (int turn = 0; turn < 5; turn++) {
        atomic_store(&f.channel.wire->worker_sleeps, 1);
        assert_int_equal(pthread_create(&worker, NULL, sleep_as_worker, f.channel.wire), 0);
        usleep(10000); /* so that it most likely sleeps */
        assert_non_null(channel_begin(&f.channel, WIRE_WAIT, 0, 0, look, &fault));
        channel_push(&f.channel, false);
        pthread_join(worker, NULL);
        assert_true(microseconds_now() - start < LONG);
    }
    free(f.memory);
}

/* ---- replies ---- */

static void test_replies(void **state)
{
    struct fixture f = make();
    struct wire_reply *said = &f.channel.wire->reply, reply;
    uint32_t seed = 7;
    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        const uint32_t bytes = next_random(&seed) % 64;
        unsigned char *raw = (unsigned char *)said;
        for (size_t i = 0; i < sizeof *said; i += 1 + next_random(&seed) % 40)
            raw[i] = (unsigned char)next_random(&seed);
        if (turn % 3)
            said->status = (int32_t)(next_random(&seed) % 40) - 20;
        if (turn % 5)
            said->bytes = bytes;
        memset(said->text, 'x', turn % 2 ? sizeof said->text : 0);
        channel_reply(&f.channel, bytes, &reply);
        assert_string_not_equal(hw_status_name(reply.status), "?");
        assert_non_null(memchr(reply.text, '\0', sizeof reply.text));
        if (!reply.status)
            assert_true(said->status == HW_OK && said->bytes == bytes);
    }
    check_guards(&f);
    free(f.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_wild),
                                        cmocka_unit_test(test_wait),
                                        cmocka_unit_test(test_await),
                                        cmocka_unit_test(test_wakes),
                                        cmocka_unit_test(test_replies) };
    return cmocka_run_group_tests_name("proxy channel", tests, NULL, NULL);
}
