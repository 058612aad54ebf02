/* SPDX-License-Identifier: MIT */
/* world.c - see world.h. */
#define _POSIX_C_SOURCE 200809L
#include "world.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static void keep_log(void *user, int32_t level, const char *text)
{
    struct world *world = user;
    if (level > HW_LOG_WARN)
        return;
    world->log_lines++;
    snprintf(world->log, sizeof world->log, "%s", text);
}

enum hw_status open_options(struct hw_options options, struct hw_context **context)
{
    options.size = sizeof options;
    options.plugin_path_only = getenv("HW_TEST_PLUGINS");
    options.threads = "1";
    if (!options.log)
        options.log = "off";
    return hw_open(&options, context);
}

void world_open(struct world *world, const char *fallback, const char *memory_limit)
{
    memset(world, 0, sizeof *world);
    ok(open_options((struct hw_options){ .backends = "discrete,cpu",
                                         .fallback = fallback,
                                         .memory_limit = memory_limit,
                                         .log = "warn",
                                         .log_fn = keep_log,
                                         .log_user = world },
                    &world->context));
    ok(hw_device_find(world->context, "cpu", &world->cpu));
    ok(hw_device_find(world->context, "discrete:0", &world->near));
    ok(hw_device_find(world->context, "discrete:1", &world->far));
    ok(hw_queue_open(world->cpu, NULL, &world->on_cpu));
    ok(hw_queue_open(world->near, NULL, &world->on_near));
    ok(hw_queue_open(world->far, NULL, &world->on_far));
}

void world_close(struct world *world)
{
    hw_close(world->context);
}

static atomic_bool held;

void hold_sleepers(void)
{
    atomic_store(&held, true);
}

void release_sleepers(void)
{
    atomic_store(&held, false);
}

static int sleep_for(const struct timespec *time, struct timespec *rest)
{
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
    return errno ? -1 : 0;
}

/* In place of that of the C library. */
int nanosleep(const struct timespec *time, struct timespec *rest)
{
    while (atomic_load(&held))
        sleep_for(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return sleep_for(time, rest);
}

void ok_at(enum hw_status status, const char *call, const char *file, int line)
{
    if (status == HW_OK)
        return;
    print_error("%s returned %s: %s\n", call, hw_status_name((int32_t)status),
                hw_message());
    _fail(file, line);
}

void fails_at(enum hw_status wanted, const char *words, enum hw_status status,
              const char *call, const char *file, int line)
{
    if (status == wanted && strstr(hw_message(), words))
        return;
    print_error("%s returned %s: %s\n  expected %s with \"%s\"\n", call,
                hw_status_name((int32_t)status), status ? hw_message() : "",
                hw_status_name((int32_t)wanted), words);
    _fail(file, line);
}

static int32_t take_extents(int64_t extents[HW_MAX_RANK], va_list arguments)
{
    int32_t rank = 0;
    for (int64_t n; rank < HW_MAX_RANK && (n = va_arg(arguments, int64_t)) >= 0; rank++)
        extents[rank] = n;
    return rank;
}

struct hw_tensor host_f32(const float *data, ...)
{
    struct hw_tensor t;
    int64_t extents[HW_MAX_RANK];
    va_list arguments;
    va_start(arguments, data);
    int32_t rank = take_extents(extents, arguments);
    va_end(arguments);
    ok(hw_tensor_host(&t, data, HW_F32, rank, extents));
    return t;
}

struct hw_tensor device_f32(struct hw_device *device, ...)
{
    struct hw_tensor t;
    int64_t extents[HW_MAX_RANK];
    va_list arguments;
    va_start(arguments, device);
    int32_t rank = take_extents(extents, arguments);
    va_end(arguments);
    ok(hw_tensor_alloc(device, 0, HW_F32, rank, extents, &t));
    return t;
}

enum hw_status copy_between(struct hw_queue *queue, const struct hw_tensor *dst,
                            const struct hw_tensor *src)
{
    return hw_copy(queue, &(struct hw_copy){ .src = *src, .dst = *dst });
}

struct hw_tensor put(struct hw_queue *queue, const float *data, int64_t rows, int64_t cols)
{
    struct hw_tensor t = device_f32(hw_queue_device(queue), rows, cols, END);
    struct hw_tensor host = host_f32(data, rows, cols, END);
    ok(copy_between(queue, &t, &host));
    ok(hw_queue_wait(queue));
    return t;
}

void get(struct hw_queue *queue, const struct hw_tensor *tensor, float *data)
{
    struct hw_tensor host;
    ok(hw_tensor_host(&host, data, HW_F32, tensor->rank, tensor->extent));
    ok(copy_between(queue, &host, tensor));
    ok(hw_queue_wait(queue));
}

enum hw_status rope_slowly(struct hw_queue *queue, const struct hw_tensor *x)
{
    const int64_t cols = x->extent[x->rank - 1];
    struct hw_rope op = { .theta = 0.5f };
    op.y = device_f32(hw_queue_device(queue), (int64_t)1, (int64_t)1, cols, END);
    ok(hw_tensor_reshape(&op.x, x, 3, op.y.extent));
    return hw_rope(queue, &op);
}

void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(i % 17) * 0.25f - 2.0f;
}

float silu(float x)
{
    return x / (1.0f + expf(-x));
}

void close_to_at(float got, float wanted, const char *file, int line)
{
    if (fabsf(got - wanted) <= 1e-6f * (1.0f + fabsf(wanted)))
        return;
    print_error("%.9g, expected %.9g\n", (double)got, (double)wanted);
    _fail(file, line);
}

struct hw_call_stats calls(struct hw_queue *queue, uint32_t op)
{
    struct hw_call_stats stats = { .size = sizeof stats };
    ok(hw_queue_calls(queue, op, &stats));
    return stats;
}

bool report_has(struct hw_context *context, const char *words)
{
    const size_t length = hw_explain(context, NULL, 0);
    char *text = malloc(length + 1);
    assert_non_null(text);
    hw_explain(context, text, length + 1);
    const bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

static int32_t no_plan(void *queue, uint32_t op, const void *args, void **plan)
{
    (void)queue, (void)op, (void)args, (void)plan;
    return HW_UNSUPPORTED;
}

void without_plans(struct hw_device *device)
{
    device->plugin->table.plan_build = no_plan;
}
