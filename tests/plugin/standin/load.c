/* SPDX-License-Identifier: MIT */
/* load.c - see load.h. */
#include "load.h"

#include "faults.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "answers.h"

struct hw_context *load_open(const struct load_vendor *vendor)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = vendor->backend,
                                        .fallback = "error" };
    struct hw_context *context;
    faults_reset();
    ok(hw_open(&options, &context));
    return context;
}

enum { COUNT = 256 };

struct worker {
    pthread_t thread;
    struct hw_device *device;
    float y[COUNT];
    struct hw_call_stats stats;
    enum hw_status status;
    char message[512];
};

/* y = 0 + 1 + 1 ... */
static enum hw_status add_ones(struct worker *self, struct hw_queue *queue)
{
    static const float zero[COUNT];
    const int64_t n = COUNT;
    float ones[COUNT];
    struct hw_tensor one, y;
    enum hw_status status;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1.0f;
    if ((status = hw_tensor_alloc(self->device, 0, HW_F32, 1, &n, &one)) ||
        (status = hw_tensor_alloc(self->device, 0, HW_F32, 1, &n, &y)) ||
        (status = hw_tensor_write(queue, &one, ones, sizeof ones)) ||
        (status = hw_tensor_write(queue, &y, zero, sizeof zero)))
        return status;
    for (int i = 0; i < LOAD_LAUNCHES; i++)
        if ((status = hw_add(queue, &(struct hw_add){ .a = y, .b = one, .y = y })))
            return status;
    if ((status = hw_tensor_read(queue, &y, self->y, sizeof self->y)) ||
        (status = hw_queue_wait(queue)))
        return status;
    self->stats.size = sizeof self->stats;
    return hw_queue_calls(queue, HW_OP_ADD, &self->stats);
}

static void *work(void *data)
{
    struct worker *self = data;
    struct hw_queue *queue;
    self->status = hw_queue_open(self->device, NULL, &queue);
    if (!self->status)
        self->status = add_ones(self, queue);
    snprintf(self->message, sizeof self->message, "%s", hw_message());
    return NULL;
}

void threads_launch_at_once(struct hw_context *context)
{
    static struct worker workers[LOAD_THREADS];
    for (int i = 0; i < LOAD_THREADS; i++) {
        workers[i].device = hw_device_at(context, (uint32_t)i % LOAD_DEVICES);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < LOAD_THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < LOAD_THREADS; i++) {
        if (workers[i].status)
            fail_msg("thread %d: %s", i, workers[i].message);
        assert_int_equal(workers[i].stats.calls, LOAD_LAUNCHES);
        assert_int_equal(workers[i].stats.fallbacks, 0);
        for (int j = 0; j < COUNT; j++)
            assert_true(workers[i].y[j] == (float)LOAD_LAUNCHES);
    }
}

/* ---- events ---- */

enum { ROUNDS = 50 };

struct sharer {
    pthread_t thread;
    struct hw_event *event;
    atomic_int *ready, *called;
    enum hw_status status;
};

static void count(void *called)
{
    ++*(atomic_int *)called;
}

static void *share(void *data)
{
    struct sharer *self = data;
    ++*self->ready;
    while (*self->ready < LOAD_THREADS)
        sched_yield();
    self->status = hw_event_callback(self->event, count, self->called);
    return NULL;
}

static void share_at_once(struct hw_event *event, atomic_int *called)
{
    struct sharer sharers[LOAD_THREADS];
    atomic_int ready = 0;
    for (int i = 0; i < LOAD_THREADS; i++) {
        sharers[i] = (struct sharer){ .event = event, .ready = &ready, .called = called };
        assert_int_equal(pthread_create(&sharers[i].thread, NULL, share, &sharers[i]), 0);
    }
    for (int i = 0; i < LOAD_THREADS; i++) {
        pthread_join(sharers[i].thread, NULL);
        assert_int_equal(sharers[i].status, HW_OK);
    }
}

void threads_share_an_event(const struct load_vendor *vendor)
{
    struct hw_context *context = load_open(vendor);
    struct hw_queue *queue;
    atomic_int called = 0;
    ok(hw_queue_open(hw_device_at(context, 0), NULL, &queue));
    for (int i = 0; i < ROUNDS; i++) {
        struct hw_event *event;
        ok(hw_event_create(hw_device_at(context, 0), 0, &event));
        ok(hw_event_record(event, queue));
        share_at_once(event, &called);
        hw_event_free(event);
    }
    hw_close(context);
    assert_int_equal(called, ROUNDS * LOAD_THREADS);
}
