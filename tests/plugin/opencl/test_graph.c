/* SPDX-License-Identifier: MIT */
/* test_graph.c - graphs of attention on the first OpenCL device, the stand-in's or a real one. If
 * several groups share its keys, they need a workspace, which belongs to the launching queue. */
#include <hw/hw.h>
#include <hw/report.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../standin/answers.h"

enum { DIM = 64, HEADS = 4, KEYS = 300, MORE_KEYS = 700, LAUNCHES = 20 };

static struct hw_context *context;
static struct hw_device *device;

static void open_with(const char *memory_limit)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "opencl",
                                        .fallback = "error",
                                        .memory_limit = memory_limit };
    ok(hw_open(&options, &context));
    device = hw_device_at(context, 0);
}

static int open_all(void **state)
{
    (void)state;
    open_with(NULL);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hw_close(context);
    return 0;
}

static struct hw_queue *open_queue(void)
{
    struct hw_queue *queue;
    ok(hw_queue_open(device, NULL, &queue));
    return queue;
}

/* A tensor [rows,heads,DIM] of different numbers between -1 and 1. */
static struct hw_tensor numbers(struct hw_queue *queue, int rows, int heads, double step)
{
    const int64_t extents[] = { rows, heads, DIM };
    const size_t count = (size_t)heads * (size_t)rows * DIM;
    struct hw_tensor t;
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)sin(step * (double)(i + 1));
    ok(hw_tensor_alloc(device, 0, HW_F32, 3, extents, &t));
    ok(hw_tensor_write(queue, &t, x, count * sizeof *x));
    ok(hw_queue_wait(queue));
    free(x);
    return t;
}

static struct hw_attention attend(struct hw_queue *queue, int keys)
{
    return (struct hw_attention){ .q = numbers(queue, 1, HEADS, 1.0),
                                  .k = numbers(queue, keys, 1, 0.7),
                                  .v = numbers(queue, keys, 1, 0.3),
                                  .y = numbers(queue, 1, HEADS, 0.0) };
}

/* In double precision. */
static void is_right(const struct hw_attention *op, struct hw_queue *queue)
{
    const int keys = (int)op->k.extent[0];
    float y[HEADS * DIM];
    ok(hw_tensor_read(queue, &op->y, y, sizeof y));
    ok(hw_queue_wait(queue));
    for (int h = 0; h < HEADS; h++) {
        double sum = 0.0, wanted[DIM] = { 0.0 };
        for (int t = 0; t < keys; t++) {
            double dot = 0.0;
            for (int d = 0; d < DIM; d++)
                dot += sin(h * DIM + d + 1) * sin(0.7 * (t * DIM + d + 1));
            const double weight = exp(dot / sqrt(DIM));
            sum += weight;
            for (int d = 0; d < DIM; d++)
                wanted[d] += weight * sin(0.3 * (t * DIM + d + 1));
        }
        for (int d = 0; d < DIM; d++)
            assert_true(fabs(y[h * DIM + d] - wanted[d] / sum) < 1e-5);
    }
}

static struct hw_graph *record(const struct hw_attention *op, struct hw_queue *queue)
{
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    ok(hw_queue_record(queue));
    ok(hw_attention(queue, op));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.built, 1);
    return graph;
}

/* Two queues, each with its own workspace. One workspace grows. */
static void queues_take_turns(void **state)
{
    struct hw_queue *first = open_queue(), *second = open_queue();
    const struct hw_attention few = attend(first, KEYS), many = attend(first, MORE_KEYS);
    struct hw_graph *graph = record(&few, first);
    (void)state;
    ok(hw_graph_launch(graph, second));
    is_right(&few, second);
    hw_queue_close(second); /* and its workspace is gone */
    ok(hw_graph_launch(graph, first));
    is_right(&few, first);
    ok(hw_attention(first, &many));
    ok(hw_graph_launch(graph, first));
    is_right(&many, first);
    is_right(&few, first);
}

static uint64_t held(void)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    ok(hw_pool_stats(device, &stats));
    return stats.held;
}

/* The stand-in computes attention by the portable kernel, which needs no workspace. */
static bool has_workspaces(void)
{
    struct hw_device_info info = { .size = sizeof info };
    ok(hw_device_info(device, &info));
    return strncmp(info.name, "Stand-in", 8) != 0;
}

static void workspaces_are_counted(void **state)
{
    struct hw_queue *queue = open_queue(), *other = open_queue();
    const struct hw_attention few = attend(queue, KEYS);
    const uint64_t before = held();
    (void)state;
    ok(hw_attention(queue, &few));
    const uint64_t workspace = held() - before;
    assert_int_equal(workspace > 0, has_workspaces());
    ok(hw_attention(queue, &few));
    assert_int_equal(held(), before + workspace);
    ok(hw_queue_wait(queue)); /* both store the same result */
    ok(hw_attention(other, &few));
    assert_int_equal(held(), before + 2 * workspace);
    hw_queue_close(other);
    hw_queue_close(queue);
    assert_int_equal(held(), before);
}

static void workspaces_are_limited(void **state)
{
    const uint64_t bytes = 64 << 20;
    struct hw_buffer *rest;
    (void)state;
    hw_close(context);
    open_with("64M");
    struct hw_queue *queue = open_queue();
    const struct hw_attention few = attend(queue, KEYS);
    ok(hw_pool_trim(device)); /* memory that the writes used */
    ok(hw_buffer_alloc(device, bytes - held(), 0, &rest));
    if (has_workspaces())
        fails(HW_NO_MEMORY, "the limit is 64 MiB", hw_attention(queue, &few));
    else
        ok(hw_attention(queue, &few));
    assert_int_equal(held(), bytes);
    hw_buffer_free(rest);
    ok(hw_attention(queue, &few));
    is_right(&few, queue);
}

static void *launch_often(void *data)
{
    const struct hw_attention *op = data;
    struct hw_queue *queue = open_queue();
    struct hw_graph *graph = record(op, queue);
    for (int i = 0; i < LAUNCHES; i++)
        ok(hw_graph_launch(graph, queue));
    is_right(op, queue);
    hw_graph_free(graph);
    hw_queue_close(queue);
    return NULL;
}

static void threads_have_workspaces(void **state)
{
    struct hw_queue *queue = open_queue();
    struct hw_attention few = attend(queue, KEYS), many = attend(queue, MORE_KEYS);
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, launch_often, &many), 0);
    launch_often(&few);
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(queues_take_turns),
        TEST(workspaces_are_counted),
        TEST(workspaces_are_limited),
        TEST(threads_have_workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
