/* SPDX-License-Identifier: MIT */
/* steps.c - correct steps: computing, copies, graphs, events, pools, packed weights, threads. */
#include "hours.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 600

void must(enum hw_status status, const char *what)
{
    if (status)
        die("%s: %s: %s", what, hw_status_name((int32_t)status), hw_message());
}

enum hw_status open_as(struct hw_options options, struct hw_context **context)
{
    options.size = sizeof options;
    options.log = "off";
    options.threads = "2";
    return hw_open(&options, context);
}

void stay_open(struct stay *stay)
{
    static const char *const names[] = { "discrete:0", "discrete:1", "cpu:0", "rogue:0" };
    must(
        open_as((struct hw_options){ .plugin_path = TEST_PLUGINS ":" PLUGINS ":" ROGUE ":!",
                                     .backends = "discrete,cpu,rogue",
                                     .worker = "rogue",
                                     .probe = random_below(2) ? "child" : "inproc" },
                &stay->context),
        "hw_open");
    for (int i = 0; i <= QUEUES; i++) {
        struct hw_queue **queue = i < QUEUES ? &stay->queues[i] : &stay->apart;
        struct hw_device *device;
        must(hw_device_find(stay->context, names[i], &device), names[i]);
        must(hw_queue_open(device, NULL, queue), names[i]);
    }
}

void stay_close(struct stay *stay)
{
    hw_close(stay->context);
    *stay = (struct stay){ 0 };
}

static struct hw_queue *any_queue(const struct stay *stay)
{
    return stay->queues[random_below(QUEUES)];
}

/* ---- numbers ---- */

static void fill(float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((i * 37) % 101) * 0.0625f - 3.0f;
}

static void check_silu(const float *x, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-5f))
            die("silu(%g) is %g", (double)x[i], (double)y[i]);
}

static struct hw_tensor tensor_on(struct hw_queue *queue, int64_t rows, int64_t cols)
{
    struct hw_tensor t;
    const int64_t extents[] = { rows, cols };
    must(hw_tensor_alloc(hw_queue_device(queue), 0, HW_F32, 2, extents, &t),
         "hw_tensor_alloc");
    return t;
}

/* ---- computing ---- */

/* Independent of the steps' random numbers, which belong to the main thread. */
static enum hw_status silu_of(struct hw_queue *queue, int64_t count)
{
    float x[NUMBERS], y[NUMBERS];
    enum hw_status status;
    fill(x, count);
    memset(y, 0xff, sizeof y);
    if ((status = hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, count),
                                                    .y = hw_host_1d(y, HW_F32, count) })) ||
        (status = hw_queue_wait(queue)))
        return status;
    check_silu(x, y, count);
    return HW_OK;
}

enum hw_status silu_right(struct hw_queue *queue)
{
    return silu_of(queue, (int64_t)random_below(NUMBERS) + 1);
}

enum hw_status silu_on(struct hw_context *context, const char *name)
{
    struct hw_device *device;
    struct hw_queue *queue;
    enum hw_status status;
    if ((status = hw_device_find(context, name, &device)) ||
        (status = hw_queue_open(device, NULL, &queue)))
        return status;
    status = silu_right(queue);
    hw_queue_close(queue);
    return status;
}

static void compute(struct stay *stay)
{
    must(silu_right(any_queue(stay)), "silu");
}

/* a * b of small whole numbers, which is exact in any order of summation. */
static void multiply(struct stay *stay)
{
    enum { M = 3, K = 40, N = 17 };
    float a[M * K], b[N * K], c[M * N];
    struct hw_queue *queue = any_queue(stay);
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i % 5 - 2);
    must(hw_matmul(queue, &(struct hw_matmul){ .a = hw_host_2d(a, HW_F32, M, K),
                                               .b = hw_host_2d(b, HW_F32, N, K),
                                               .c = hw_host_2d(c, HW_F32, M, N),
                                               .transpose_b = 1 }),
         "matmul");
    must(hw_queue_wait(queue), "matmul");
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[m * K + k] * b[n * K + k];
            if (c[m * N + n] != sum)
                die("matmul: %g instead of %g", (double)c[m * N + n], (double)sum);
        }
}

/* Waits even after a failure, because earlier ops still use the memory. */
static enum hw_status wait_too(struct hw_queue *queue, enum hw_status status)
{
    const enum hw_status waited = hw_queue_wait(queue);
    return status ? status : waited;
}

enum hw_status copy_right(struct hw_queue *queue)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    const int64_t extent = 4;
    struct hw_tensor t;
    enum hw_status status = hw_tensor_alloc(hw_queue_device(queue), 0, HW_F32, 1, &extent,
                                            &t);
    if (status)
        return status;
    if (!(status = hw_tensor_write(queue, &t, x, sizeof x)))
        status = hw_tensor_read(queue, &t, y, sizeof y);
    status = wait_too(queue, status);
    if (!status && memcmp(x, y, sizeof x) != 0)
        die("a copy changed the numbers");
    hw_buffer_free(t.buffer);
    return status;
}

static enum hw_status record_silu(struct hw_queue *queue, const struct hw_tensor *x,
                                  const struct hw_tensor *y, struct hw_graph **graph)
{
    enum hw_status status = hw_queue_record(queue);
    *graph = NULL;
    if (status)
        return status;
    status = hw_silu(queue, &(struct hw_silu){ .x = *x, .y = *y });
    const enum hw_status ended = hw_queue_end(queue, graph);
    return status ? status : ended;
}

enum hw_status graph_right(struct hw_queue *queue)
{
    float x[NUMBERS], y[NUMBERS];
    const int64_t extent = NUMBERS;
    struct hw_device *device = hw_queue_device(queue);
    struct hw_tensor from = { 0 }, to = { 0 };
    struct hw_graph *graph = NULL;
    enum hw_status status;
    fill(x, NUMBERS);
    if (!(status = hw_tensor_alloc(device, 0, HW_F32, 1, &extent, &from)) &&
        !(status = hw_tensor_alloc(device, 0, HW_F32, 1, &extent, &to)) &&
        !(status = record_silu(queue, &from, &to, &graph)) &&
        !(status = hw_tensor_write(queue, &from, x, sizeof x)) &&
        !(status = hw_graph_launch(graph, queue)))
        status = hw_tensor_read(queue, &to, y, sizeof y);
    status = wait_too(queue, status);
    if (!status)
        check_silu(x, y, NUMBERS);
    hw_graph_free(graph);
    hw_buffer_free(to.buffer);
    hw_buffer_free(from.buffer);
    return status;
}

/* From the host over all devices and back. */
static void travel(struct stay *stay)
{
    float x[NUMBERS], y[NUMBERS] = { 0 };
    struct hw_tensor t[QUEUES];
    fill(x, NUMBERS);
    for (int i = 0; i < QUEUES; i++)
        t[i] = tensor_on(stay->queues[i], NUMBERS / 4, 4);
    must(hw_tensor_write(stay->queues[0], &t[0], x, sizeof x), "hw_tensor_write");
    for (int i = 1; i < QUEUES; i++) {
        must(hw_queue_wait(stay->queues[i - 1]), "hw_queue_wait");
        must(hw_copy(stay->queues[i], &(struct hw_copy){ .src = t[i - 1], .dst = t[i] }),
             "copy");
    }
    must(hw_tensor_read(stay->queues[QUEUES - 1], &t[QUEUES - 1], y, sizeof y),
         "hw_tensor_read");
    must(hw_queue_wait(stay->queues[QUEUES - 1]), "hw_queue_wait");
    if (memcmp(x, y, sizeof x) != 0)
        die("copies over all devices changed the numbers");
    for (int i = 0; i < QUEUES; i++)
        hw_buffer_free(t[i].buffer);
}

/* ---- objects ---- */

static void replay(struct stay *stay)
{
    float x[NUMBERS], y[NUMBERS];
    struct hw_graph *graph;
    struct hw_queue *queue = any_queue(stay);
    const struct hw_tensor t = tensor_on(queue, 1, NUMBERS);
    fill(x, NUMBERS);
    must(hw_queue_record(queue), "hw_queue_record");
    must(hw_tensor_write(queue, &t, x, sizeof x), "write");
    must(hw_silu(queue, &(struct hw_silu){ .x = t, .y = t }), "silu");
    must(hw_tensor_read(queue, &t, y, sizeof y), "read");
    must(hw_queue_end(queue, &graph), "hw_queue_end");
    for (int i = 0; i < 2; i++) {
        memset(y, 0xff, sizeof y);
        must(hw_graph_launch(graph, queue), "hw_graph_launch");
        must(hw_queue_wait(queue), "hw_queue_wait");
        check_silu(x, y, NUMBERS);
    }
    hw_graph_free(graph);
    hw_buffer_free(t.buffer);
}

static void called(void *user)
{
    *(volatile int *)user = 1;
}

/* One queue computes, and another one reads the result after an event. */
static void order(struct stay *stay)
{
    float x[NUMBERS], y[NUMBERS];
    volatile int done = 0;
    struct hw_event *event;
    struct hw_queue *first = any_queue(stay), *second = any_queue(stay);
    const struct hw_tensor t = tensor_on(first, 1, NUMBERS);
    fill(x, NUMBERS);
    must(hw_event_create(hw_queue_device(first), 0, &event), "hw_event_create");
    must(hw_tensor_write(first, &t, x, sizeof x), "write");
    must(hw_silu(first, &(struct hw_silu){ .x = t, .y = t }), "silu");
    must(hw_event_record(event, first), "hw_event_record");
    must(hw_event_callback(event, called, (void *)(uintptr_t)&done), "hw_event_callback");
    must(hw_event_wait(event, second), "hw_event_wait");
    must(hw_tensor_read(second, &t, y, sizeof y), "read");
    must(hw_queue_wait(second), "hw_queue_wait");
    must(hw_event_sync(event), "hw_event_sync");
    check_silu(x, y, NUMBERS);
    hw_event_free(event);
    if (!done)
        die("an event that is complete did not call back");
    hw_buffer_free(t.buffer);
}

static void allocate(struct stay *stay)
{
    struct hw_buffer *buffers[8];
    struct hw_queue *queue = any_queue(stay);
    struct hw_device *device = hw_queue_device(queue);
    struct hw_pool_stats before = { .size = sizeof before }, after = before;
    must(hw_queue_wait(queue), "hw_queue_wait");
    must(hw_pool_trim(device), "hw_pool_trim");
    must(hw_pool_stats(device, &before), "hw_pool_stats");
    for (int i = 0; i < 8; i++)
        must(hw_buffer_alloc(device, 1 + random_below(100000), 0, &buffers[i]),
             "hw_buffer_alloc");
    for (int i = 0; i < 8; i++)
        i % 2 ? hw_buffer_free(buffers[i]) : hw_buffer_free_after(buffers[i], queue);
    must(hw_queue_wait(queue), "hw_queue_wait");
    must(hw_pool_trim(device), "hw_pool_trim");
    must(hw_pool_stats(device, &after), "hw_pool_stats");
    if (before.buffers != after.buffers || before.held != after.held)
        die("the pool of %s has %llu bytes, then %llu", hw_device_name(device),
            (unsigned long long)before.held, (unsigned long long)after.held);
}

static void pack(struct stay *stay)
{
    float x[NUMBERS];
    struct hw_tensor packed;
    struct hw_queue *queue = any_queue(stay);
    const struct hw_tensor t = tensor_on(queue, NUMBERS / 10, 10);
    fill(x, NUMBERS);
    must(hw_tensor_write(queue, &t, x, sizeof x), "write");
    must(hw_tensor_pack(queue, &t, &packed), "hw_tensor_pack");
    hw_buffer_free_after(t.buffer, queue);
    must(hw_queue_wait(queue), "hw_queue_wait");
    hw_buffer_free(packed.buffer);
}

static void explain(struct stay *stay)
{
    const size_t size = hw_explain(stay->context, NULL, 0);
    char *text = malloc(size + 1);
    if (!text || hw_explain(stay->context, text, size + 1) != size || *text != '{')
        die("hw_explain: %zu bytes", size);
    free(text);
}

/* ---- more contexts, more threads ---- */

static void *compute_aside(void *context)
{
    static const char *const names[] = { "discrete:1", "cpu:0" };
    for (int i = 0; i < 2; i++) {
        struct hw_device *device;
        struct hw_queue *queue;
        must(hw_device_find(context, names[i], &device), names[i]);
        must(hw_queue_open(device, NULL, &queue), names[i]);
        must(silu_of(queue, NUMBERS), names[i]);
        hw_queue_close(queue);
    }
    return NULL;
}

static void share(struct stay *stay)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, compute_aside, stay->context))
            die("a thread cannot be started");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Uses a verdict of an earlier start, or loads the plugin in this process. */
static void open_another(struct stay *stay)
{
    struct hw_context *context;
    (void)stay;
    must(open_as((struct hw_options){ .plugin_path = below("good:!"),
                                      .probe = random_below(2) ? "child" : "inproc" },
                 &context),
         "hw_open");
    if (!has_good(context))
        die("the good plugin was not used: %s", hw_message());
    hw_close(context);
}

static void open_again(struct stay *stay)
{
    stay_close(stay);
    stay_open(stay);
}

const struct scene steps[] = {
    { "compute", compute },
    { "multiply", multiply },
    { "copy", travel },
    { "graph", replay },
    { "event", order },
    { "pool", allocate },
    { "pack", pack },
    { "explain", explain },
    { "threads", share },
    { "open", open_another },
    { "reopen", open_again },
    { "worker", apart_compute },
    { "start a worker", apart_all },
    { "rescan", rescan_same },
};
const size_t step_count = sizeof steps / sizeof *steps;
