/* SPDX-License-Identifier: MIT */
/* test_threads.c - several queues, on one device and on several, used in parallel while
 * other threads allocate and read the report. ThreadSanitizer finds the races; this
 * program finds wrong results. */
#include "world.h"

#include <stdio.h>

enum { THREADS = 6, ROUNDS = 40 };

struct job {
    struct world *world;
    int number;
    char wrong[256];
};

#define TRY(call)                                                                          \
    do {                                                                                   \
        if (call) {                                                                        \
            snprintf(job->wrong, sizeof job->wrong, "%s: %s", #call, hw_message());        \
            return NULL;                                                                   \
        }                                                                                  \
    } while (0)

static struct hw_tensor make(struct job *job, struct hw_device *device)
{
    struct hw_tensor t = { .rank = -1 };
    const int64_t extents[] = { 4, 8 };
    if (hw_tensor_alloc(device, 0, HW_F32, 2, extents, &t))
        snprintf(job->wrong, sizeof job->wrong, "%s", hw_message());
    return t;
}

/* Each thread has a queue of its own. The ops take every path: direct, staged, copied
 * views, fallback. */
static void *compute(void *user)
{
    struct job *job = user;
    struct world *w = job->world;
    struct hw_device *const devices[] = { w->near, w->cpu, w->far };
    struct hw_device *device = devices[job->number % 3];
    struct hw_queue *queue;
    float x[32] = { 0 }, y[32] = { 0 };
    const struct hw_tensor hx = hw_host_2d(x, HW_F32, 4, 8),
                           hy = hw_host_2d(y, HW_F32, 4, 8);
    TRY(hw_queue_open(device, NULL, &queue));
    for (int round = 0; round < ROUNDS; round++) {
        struct hw_tensor a = make(job, device), b = make(job, device), view;
        for (int i = 0; i < 32; i++)
            x[i] = (float)(i + job->number + round);
        TRY(copy_between(queue, &a, &hx));
        TRY(hw_add(queue, &(struct hw_add){ .a = a, .b = hx, .y = b }));
        TRY(hw_tensor_slice(&view, &b, 1, 0, 4));
        TRY(hw_mul(queue, &(struct hw_mul){ .a = view, .b = view, .y = view }));
        TRY(copy_between(queue, &hy, &b));
        TRY(hw_queue_wait(queue));
        for (int i = 0; i < 32; i++)
            if (y[i] != (i % 8 < 4 ? 4.0f * x[i] * x[i] : 2.0f * x[i]))
                snprintf(job->wrong, sizeof job->wrong, "element %d is %g", i,
                         (double)y[i]);
        hw_buffer_free(a.buffer);
        hw_buffer_free_after(b.buffer, queue);
    }
    hw_queue_close(queue);
    return NULL;
}

static void *report(void *user)
{
    struct job *job = user;
    static char text[1 << 16];
    for (int round = 0; round < ROUNDS; round++) {
        hw_explain(job->world->context, text, sizeof text);
        struct hw_pool_stats stats = { .size = sizeof stats };
        TRY(hw_pool_stats(job->world->near, &stats));
        TRY(hw_pool_trim(job->world->near));
    }
    return NULL;
}

static void queues_in_parallel(void **state)
{
    struct world w;
    struct job jobs[THREADS + 1];
    pthread_t threads[THREADS + 1];
    (void)state;
    world_open(&w, NULL, NULL);
    for (int i = 0; i <= THREADS; i++) {
        jobs[i] = (struct job){ .world = &w, .number = i };
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < THREADS ? compute : report, &jobs[i]), 0);
    }
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i <= THREADS; i++)
        assert_string_equal(jobs[i].wrong, "");
    struct hw_pool_stats stats = { .size = sizeof stats };
    ok(hw_pool_stats(w.near, &stats));
    assert_int_equal(stats.buffers, 0);
    /* The report keeps closed queues: three of six queues fell back, each logged once. */
    size_t length = hw_explain(w.context, NULL, 0);
    char *text = malloc(length + 1);
    hw_explain(w.context, text, length + 1);
    assert_non_null(strstr(text, "\"op\":\"mul\",\"calls\":80,\"fallbacks\":80"));
    free(text);
    assert_int_equal(w.log_lines, 2);
    world_close(&w);
}

/* Any thread may use an event: one records it, another queries it and waits for it. */
struct shared {
    struct world *world;
    struct hw_event *event;
    char wrong[256];
};

static void *record(void *user)
{
    struct shared *job = user;
    for (int round = 0; round < ROUNDS; round++)
        TRY(hw_event_record(job->event, job->world->on_near));
    return NULL;
}

static void *ask(void *user)
{
    struct shared *job = user;
    for (int round = 0; round < ROUNDS; round++) {
        const enum hw_status status = hw_event_query(job->event);
        TRY(status != HW_OK && status != HW_NOT_READY);
        TRY(hw_event_wait(job->event, job->world->on_far));
        TRY(hw_event_sync(job->event));
    }
    return NULL;
}

static void events_between_threads(void **state)
{
    struct world w;
    pthread_t recorder, asker;
    (void)state;
    world_open(&w, NULL, NULL);
    struct shared a = { .world = &w }, b;
    ok(hw_event_create(w.near, 0, &a.event));
    b = a;
    assert_int_equal(pthread_create(&asker, NULL, ask, &b), 0);
    assert_int_equal(pthread_create(&recorder, NULL, record, &a), 0);
    pthread_join(recorder, NULL);
    pthread_join(asker, NULL);
    assert_string_equal(a.wrong, "");
    assert_string_equal(b.wrong, "");
    world_close(&w);
}

static void *look(void *context)
{
    char text[4096];
    for (int round = 0; round < ROUNDS; round++)
        hw_explain(context, text, sizeof text);
    return NULL;
}

/* The report can be read while other threads open devices. */
static void devices_open_while_reports_are_read(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "discrete,cpu",
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .log = "off" };
    struct hw_context *context;
    struct hw_queue *queue;
    pthread_t thread;
    (void)state;
    ok(hw_open(&options, &context));
    assert_int_equal(pthread_create(&thread, NULL, look, context), 0);
    for (uint32_t i = 0; i < hw_device_count(context); i++)
        ok(hw_queue_open(hw_device_at(context, i), NULL, &queue));
    pthread_join(thread, NULL);
    hw_close(context);
}

/* Each thread has its own message. */
static void *fail_here(void *user)
{
    hw_buffer_alloc(NULL, 8, 0, user);
    return NULL;
}

static void messages_are_per_thread(void **state)
{
    struct hw_buffer *buffer;
    pthread_t thread;
    (void)state;
    fails(HW_INVALID, "queue must not be NULL", hw_queue_wait(NULL));
    assert_int_equal(pthread_create(&thread, NULL, fail_here, &buffer), 0);
    pthread_join(thread, NULL);
    assert_non_null(strstr(hw_message(), "queue must not be NULL"));
}

/* The message is kept while the caller waits, cleans up and closes. */
static void a_message_stays(void **state)
{
    struct world w;
    struct hw_queue *queue;
    struct hw_tensor t;
    struct hw_buffer *buffer;
    (void)state;
    world_open(&w, NULL, NULL);
    ok(hw_queue_open(w.near, NULL, &queue));
    ok(hw_buffer_alloc(w.near, 64, 0, &buffer));
    fails(HW_INVALID, "dtype", hw_tensor_view(&t, buffer, 0, 99, 1, (int64_t[]){ 4 }));
    ok(hw_queue_wait(queue));
    const struct hw_arg code = { .kind = HW_ARG_INT, .i = HW_DRIVER };
    ok(hw_extension_call(queue, "discrete.fail", &code,
                         1)); /* fails later, and no call reports it */
    hw_buffer_free(buffer);
    hw_queue_close(queue);
    world_close(&w);
    assert_non_null(strstr(hw_message(), "dtype"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_in_parallel),
        cmocka_unit_test(events_between_threads),
        cmocka_unit_test(devices_open_while_reports_are_read),
        cmocka_unit_test(messages_are_per_thread),
        cmocka_unit_test(a_message_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
