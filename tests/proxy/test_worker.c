/* SPDX-License-Identifier: MIT */
/* test_worker.c - plugins in processes of their own: they compute as others do, and what they do to
 * their process, the application outlives. */
#define _GNU_SOURCE
#include "rogue.h"

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 64, CYCLES = 50 };

/* ---- contexts ---- */

static const char *const both = PLUGINS "/hw_rogue.so:" CPU;

static struct hw_context *open_with(const char *worker, const char *path, const char *limit)
{
    struct hw_context *context;
    char alone[4096];
    snprintf(alone, sizeof alone, "%s:!", path);
    const struct hw_options options = { .size = sizeof options,
                                        .worker = worker,
                                        .plugin_path = alone,
                                        .memory_limit = limit,
                                        .cache_dir = "off",
                                        .fallback = "error",
                                        .log = "error",
                                        .threads = "1" };
    if (hw_open(&options, &context))
        fail_msg("%s", hw_message());
    return context;
}

static struct hw_device *device_of(struct hw_context *context, const char *name)
{
    struct hw_device *device;
    if (hw_device_find(context, name, &device))
        fail_msg("%s", hw_message());
    return device;
}

/* The process of the backend, by the report; its state if `state` is not NULL. */
static pid_t process_of(struct hw_context *context, const char *name, char state[32])
{
    const size_t size = hw_explain(context, NULL, 0) + 1;
    char *text = malloc(size);
    pid_t process = -1;
    hw_explain(context, text, size);
    json_t *report = json_loads(text, 0, NULL);
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(report, "candidates"), i, entry) {
        const json_t *worker = json_object_get(entry, "worker");
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) != 0)
            continue;
        process = (pid_t)json_integer_value(json_object_get(worker, "process"));
        if (state)
            snprintf(state, 32, "%s",
                     json_is_null(worker)
                         ? "none"
                         : json_string_value(json_object_get(worker, "state")));
    }
    json_decref(report);
    free(text);
    return process;
}

/* ---- work ---- */

static struct hw_tensor on_host(float *data)
{
    struct hw_tensor t = { .data = data, .dtype = HW_F32, .rank = 1 };
    t.extent[0] = N;
    t.stride[0] = sizeof(float);
    return t;
}

static struct hw_tensor on_device(struct hw_buffer *buffer, uint64_t offset)
{
    struct hw_tensor t = on_host(NULL);
    t.buffer = buffer;
    t.offset = offset;
    return t;
}

static float silu_of(float x)
{
    return x / (1.0f + expf(-x));
}

/* silu on tensors of the host, which are staged. */
static enum hw_status compute(struct hw_queue *queue, float first, float y[N])
{
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 7) - 3.0f;
    x[0] = first;
    memset(y, 0, N * sizeof *y);
    const struct hw_silu op = { .x = on_host(x), .y = on_host(y) };
    enum hw_status status = hw_silu(queue, &op);
    const enum hw_status late = hw_queue_wait(queue);
    status = status ? status : late;
    if (!status)
        for (int i = 0; i < N; i++)
            assert_true(fabsf(y[i] - silu_of(x[i])) < 1e-5f);
    return status;
}

static struct hw_queue *open_queue(struct hw_context *context, const char *name)
{
    struct hw_queue *queue;
    if (hw_queue_open(device_of(context, name), NULL, &queue))
        fail_msg("%s", hw_message());
    return queue;
}

static void check_computes(struct hw_queue *queue)
{
    float y[N];
    if (compute(queue, 1.0f, y))
        fail_msg("%s", hw_message());
}

/* ---- it works ---- */

static void test_computes(void **state)
{
    static const char *const paths[] = { CPU, DISCRETE, PLUGINS "/hw_rogue.so" };
    static const char *const names[] = { "cpu", "discrete", "rogue" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        char text[32];
        struct hw_context *context = open_with("c*,discrete,rogue", paths[i], NULL);
        struct hw_queue *queue = open_queue(context, names[i]);
        const pid_t process = process_of(context, names[i], text);
        assert_string_equal(text, "running");
        assert_true(process > 0 && process != getpid() && !kill(process, 0));
        for (int turn = 0; turn < 3; turn++)
            check_computes(queue);
        hw_close(context);
        assert_true(kill(process, 0)); /* it is gone with the context */
    }
}

/* silu twice, recorded once. The plugin builds the graph there, if it can: then a launch is one
 * call. */
static void check_graph(struct hw_queue *queue, uint32_t built)
{
    float x[N], y[N];
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    struct hw_tensor t;
    const int64_t extent = N;
    assert_int_equal(hw_tensor_alloc(hw_queue_device(queue), 0, HW_F32, 1, &extent, &t),
                     HW_OK);
    const struct hw_silu op = { .x = t, .y = t };
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 7) - 3.0f;
    assert_int_equal(hw_queue_record(queue), HW_OK);
    assert_int_equal(hw_silu(queue, &op), HW_OK);
    assert_int_equal(hw_silu(queue, &op), HW_OK);
    assert_int_equal(hw_queue_end(queue, &graph), HW_OK);
    assert_int_equal(hw_graph_info(graph, &info), HW_OK);
    assert_int_equal(info.built, built);
    for (int turn = 0; turn < 3; turn++) {
        if (hw_tensor_write(queue, &t, x, sizeof x) || hw_graph_launch(graph, queue) ||
            hw_tensor_read(queue, &t, y, sizeof y) || hw_queue_wait(queue))
            fail_msg("%s", hw_message());
        for (int i = 0; i < N; i++)
            assert_true(fabsf(y[i] - silu_of(silu_of(x[i]))) < 1e-5f);
    }
    hw_graph_free(graph);
    hw_buffer_free(t.buffer);
}

static void test_graphs(void **state)
{
    static const struct {
        const char *path, *name;
        uint32_t built;
    } plugins[] = { { CPU, "cpu", 1 },
                    { DISCRETE, "discrete", 1 },
                    { PLUGINS "/hw_rogue.so", "rogue", 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++) {
        struct hw_context *context = open_with("*", plugins[i].path, NULL);
        struct hw_queue *queue = open_queue(context, plugins[i].name);
        check_graph(queue, plugins[i].built);
        check_graph(queue, plugins[i].built);
        hw_close(context);
    }
}

/* A buffer that the host sees: both processes have its memory, and a chain of calls needs no
 * answer in between. */
static void test_shares_memory(void **state)
{
    struct hw_context *context = open_with("cpu", CPU, NULL);
    struct hw_queue *queue = open_queue(context, "cpu");
    struct hw_buffer *buffer;
    (void)state;
    assert_int_equal(hw_buffer_alloc(device_of(context, "cpu"), 3 * N * sizeof(float),
                                     HW_BUFFER_ZEROED, &buffer),
                     HW_OK);
    float *x = hw_buffer_host(buffer), want = 0.5f;
    assert_non_null(x);
    for (int i = 0; i < N; i++)
        x[i] = 0.5f;
    /* Hundreds of calls, more than a ring has room for, in their order. */
    for (int turn = 0; turn < 600; turn++) {
        const struct hw_scale op = { .x = on_device(buffer, 0),
                                     .y = on_device(buffer, 0),
                                     .scale = turn % 2 ? 0.5f : 2.0f,
                                     .bias = 1.0f };
        assert_int_equal(hw_scale(queue, &op), HW_OK);
        want = op.scale * want + 1.0f;
    }
    assert_int_equal(hw_queue_wait(queue), HW_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(x[i] - want) < 1e-3f);
    hw_close(context);
}

/* More than the staging memory, in rows with gaps on one side. */
static void test_transfers(void **state)
{
    enum { ROWS = 600, COLUMNS = 3000, PITCH = 3500 };
    struct hw_context *context = open_with("discrete", DISCRETE, NULL);
    struct hw_device *device = device_of(context, "discrete");
    struct hw_queue *queue = open_queue(context, "discrete");
    struct hw_buffer *buffer;
    float *from = calloc((size_t)ROWS * PITCH, sizeof *from),
          *back = calloc((size_t)ROWS * PITCH, sizeof *back);
    struct hw_tensor host = { .data = from, .dtype = HW_F32, .rank = 2 };
    (void)state;
    host.extent[0] = ROWS;
    host.extent[1] = COLUMNS;
    host.stride[0] = PITCH * sizeof *from;
    host.stride[1] = sizeof *from;
    for (int i = 0; i < ROWS * PITCH; i++)
        from[i] = (float)i;
    assert_int_equal(
        hw_buffer_alloc(device, (uint64_t)ROWS * COLUMNS * sizeof *from, 0, &buffer),
        HW_OK);
    assert_null(hw_buffer_host(buffer));
    struct hw_tensor inside = host;
    inside.data = NULL;
    inside.buffer = buffer;
    inside.stride[0] = COLUMNS * sizeof *from;
    assert_int_equal(hw_copy(queue, &(struct hw_copy){ .src = host, .dst = inside }),
                     HW_OK);
    host.data = back;
    assert_int_equal(hw_copy(queue, &(struct hw_copy){ .src = inside, .dst = host }),
                     HW_OK);
    assert_int_equal(hw_queue_wait(queue), HW_OK);
    for (int i = 0; i < ROWS * PITCH; i++)
        assert_true(back[i] == (i % PITCH < COLUMNS ? from[i] : 0.0f));
    free(from);
    free(back);
    hw_close(context);
}

static void test_events(void **state)
{
    struct hw_context *context = open_with("discrete", DISCRETE, NULL);
    struct hw_device *device = device_of(context, "discrete");
    struct hw_queue *first = open_queue(context, "discrete"),
                    *second = open_queue(context, "discrete");
    struct hw_event *event;
    struct hw_buffer *buffer;
    (void)state;
    assert_int_equal(hw_event_create(device, 0, &event), HW_OK);
    assert_int_equal(hw_buffer_alloc(device, 4096, 0, &buffer), HW_OK);
    float x[N], y[N];
    for (int turn = 0; turn < 50; turn++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(turn + i);
        const struct hw_copy in = { .src = on_host(x), .dst = on_device(buffer, 0) },
                             out = { .src = on_device(buffer, 0), .dst = on_host(y) };
        assert_int_equal(hw_copy(first, &in), HW_OK);
        assert_int_equal(hw_event_record(event, first), HW_OK);
        assert_int_equal(hw_event_wait(event, second), HW_OK);
        assert_int_equal(hw_copy(second, &out), HW_OK);
        assert_int_equal(hw_queue_wait(second), HW_OK);
        assert_memory_equal(x, y, sizeof x);
        assert_int_equal(hw_event_sync(event), HW_OK);
        assert_int_equal(hw_event_query(event), HW_OK);
    }
    hw_event_free(event);
    hw_close(context);
}

/* A missing op is reported at the call, not later: another device could compute it. */
static void test_unsupported(void **state)
{
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue");
    float x[4] = { 1, 2, 3, 4 };
    struct hw_tensor t = { .data = x, .dtype = HW_F32, .rank = 2 };
    (void)state;
    t.extent[0] = t.extent[1] = 2;
    t.stride[0] = 2 * sizeof *x;
    t.stride[1] = sizeof *x;
    assert_int_equal(hw_silu(queue, &(struct hw_silu){ .x = t, .y = t }), HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), "of rank 1 alone"));
    hw_close(context);
}

/* A form of call that was accepted, and then fails, is not taken as accepted any more. */
static void test_fails_late(void **state)
{
    float y[N], x[N] = { ACT_REFUSE };
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue");
    const struct hw_silu op = { .x = on_host(x), .y = on_host(y) };
    (void)state;
    check_computes(queue);
    assert_int_equal(hw_silu(queue, &op), HW_OK);
    assert_int_equal(hw_queue_wait(queue), HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), "rogue refuses this"));
    assert_int_equal(hw_silu(queue, &op), HW_UNSUPPORTED);
    hw_close(context);
}

/* ---- a plugin whose work is done when it is waited for ---- */

static struct hw_buffer *alloc_on(struct hw_context *context, const char *name,
                                  uint32_t flags)
{
    struct hw_buffer *buffer;
    if (hw_buffer_alloc(device_of(context, name), N * sizeof(float), flags, &buffer))
        fail_msg("%s", hw_message());
    return buffer;
}

static void silu_in(struct hw_queue *queue, struct hw_buffer *x, struct hw_buffer *y)
{
    const struct hw_silu op = { .x = on_device(x, 0), .y = on_device(y, 0) };
    if (hw_silu(queue, &op))
        fail_msg("%s", hw_message());
}

/* A host tensor in a buffer that an earlier call has yet to write. */
static void test_address_of_buffer(void **state)
{
    struct hw_context *context = open_with("lazy", PLUGINS "/hw_lazy.so", NULL);
    struct hw_queue *queue = open_queue(context, "lazy");
    struct hw_buffer *x = alloc_on(context, "lazy", HW_BUFFER_HOST_VISIBLE),
                     *y = alloc_on(context, "lazy", HW_BUFFER_HOST_VISIBLE),
                     *own = alloc_on(context, "lazy", 0);
    float *in = hw_buffer_host(x), *out = hw_buffer_host(y), got[N];
    (void)state;
    assert_null(hw_buffer_host(own)); /* so that the copy is staged */
    for (int i = 0; i < N; i++) {
        in[i] = 2.0f;
        out[i] = 0.0f;
    }
    silu_in(queue, x, y);
    assert_int_equal(
        hw_copy(queue, &(struct hw_copy){ .src = on_host(out), .dst = on_device(own, 0) }),
        HW_OK);
    assert_int_equal(
        hw_copy(queue, &(struct hw_copy){ .src = on_device(own, 0), .dst = on_host(got) }),
        HW_OK);
    assert_int_equal(hw_queue_wait(queue), HW_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(got[i] - 2.0f / (1.0f + expf(-2.0f))) < 1e-5f);
    hw_close(context);
}

/* An event whose record failed: once it is complete, so is what came before it. */
static void test_failed_record(void **state)
{
    struct hw_context *context = open_with("lazy", PLUGINS "/hw_lazy.so", NULL);
    struct hw_queue *queue = open_queue(context, "lazy");
    struct hw_buffer *x = alloc_on(context, "lazy", HW_BUFFER_HOST_VISIBLE);
    struct hw_event *event;
    float *in = hw_buffer_host(x);
    (void)state;
    assert_int_equal(hw_event_create(device_of(context, "lazy"), 0, &event), HW_OK);
    in[N - 1] = 2.0f;
    silu_in(queue, x, x);
    assert_int_equal(hw_event_record(event, queue), HW_OK);
    assert_int_equal(hw_event_sync(event), HW_OK);
    assert_true(in[N - 1] < 1.9f);
    assert_int_equal(hw_queue_wait(queue), HW_INTERNAL);
    assert_non_null(strstr(hw_message(), "no event is recorded"));
    hw_event_free(event);
    hw_close(context);
}

/* Pages may be aligned to less than the device needs. */
static void test_alignment(void **state)
{
    struct hw_context *context = open_with("wide", PLUGINS "/hw_wide.so", NULL);
    struct hw_queue *queue = open_queue(context, "wide");
    struct hw_buffer *buffer;
    (void)state;
    for (int turn = 0; turn < 3; turn++)
        check_computes(queue);
    assert_int_equal(
        hw_buffer_alloc(device_of(context, "wide"), 4096, HW_BUFFER_HOST_VISIBLE, &buffer),
        HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), "aligned"));
    hw_close(context);
}

static void test_refuses(void **state)
{
    static char memory[4096];
    struct hw_context *context = open_with("cpu", CPU, NULL);
    struct hw_buffer *buffer;
    const struct hw_import desc = {
        .size = sizeof desc, .kind = "host", .handle = memory, .bytes = sizeof memory
    };
    (void)state;
    assert_int_equal(hw_buffer_import(device_of(context, "cpu"), &desc, &buffer),
                     HW_UNSUPPORTED);
    assert_non_null(strstr(hw_message(), "HW_WORKER"));
    hw_close(context);
}

static void test_memory_limit(void **state)
{
    struct hw_context *context = open_with("cpu", CPU, "16M");
    struct hw_device *device = device_of(context, "cpu");
    struct hw_buffer *buffer;
    struct hw_pool_stats stats = { .size = sizeof stats };
    (void)state;
    assert_int_equal(hw_buffer_alloc(device, 10 << 20, 0, &buffer), HW_OK);
    assert_int_equal(hw_pool_stats(device, &stats), HW_OK);
    assert_true(stats.used >= 10 << 20);
    assert_int_equal(hw_buffer_alloc(device, 10 << 20, 0, &buffer), HW_NO_MEMORY);
    assert_non_null(strstr(hw_message(), "HW_MEMORY_LIMIT"));
    hw_close(context);
}

/* ---- it ends ---- */

/* The process of rogue ends in a call with this number: that, and all that follows, is HW_LOST and
 * says why; the CPU computes on. */
static void check_end(float number, const char *first, const char *second)
{
    char text[32];
    float y[N];
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue"),
                    *other = open_queue(context, "cpu");
    struct hw_buffer *buffer;
    check_computes(queue);
    assert_int_equal(compute(queue, number, y), HW_LOST);
    for (int turn = 0; turn < 2; turn++) {
        if (!strstr(hw_message(), first) || !strstr(hw_message(), second))
            fail_msg("%s", hw_message());
        assert_int_equal(compute(queue, 1.0f, y), HW_LOST);
    }
    assert_int_equal(hw_buffer_alloc(device_of(context, "rogue"), 4096, 0, &buffer),
                     HW_LOST);
    assert_non_null(strstr(hw_message(), first));
    process_of(context, "rogue", text);
    assert_string_equal(text, "ended");
    check_computes(other);
    hw_close(context);
    /* A new context has a new process. */
    context = open_with("rogue", both, NULL);
    check_computes(open_queue(context, "rogue"));
    hw_close(context);
}

static void test_crash(void **state)
{
    (void)state;
    check_end(ACT_CRASH, "segmentation fault (signal 11)", "HW_WORKER");
}

static void test_leave(void **state)
{
    (void)state;
    check_end(ACT_LEAVE, "it ended with status 3", "rogue");
}

static void test_abort(void **state)
{
    (void)state;
    check_end(ACT_ABORT, "abort (signal 6)", "the last words of rogue");
}

static pid_t hung;

static void kill_hung(int number)
{
    (void)number;
    kill(hung, SIGKILL);
}

/* Nothing ends a hang but a kill: which is noticed at once. */
static void test_hang(void **state)
{
    float y[N];
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue");
    (void)state;
    check_computes(queue);
    hung = process_of(context, "rogue", NULL);
    signal(SIGALRM, kill_hung);
    alarm(1);
    assert_int_equal(compute(queue, ACT_HANG, y), HW_LOST);
    signal(SIGALRM, SIG_DFL);
    assert_non_null(strstr(hw_message(), "it was killed (signal 9)"));
    check_computes(open_queue(context, "cpu"));
    hw_close(context);
}

/* Killed between two calls; and the process that watches over it. */
static void test_killed(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        float y[N];
        char stat[64], line[256];
        struct hw_context *context = open_with("rogue", both, NULL);
        struct hw_queue *queue = open_queue(context, "rogue");
        pid_t process = process_of(context, "rogue", NULL);
        check_computes(queue);
        if (turn) {
            snprintf(stat, sizeof stat, "/proc/%d/stat", (int)process);
            FILE *file = fopen(stat, "r");
            assert_true(file && fgets(line, sizeof line, file));
            fclose(file);
            assert_int_equal(sscanf(strrchr(line, ')'), ") %*c %d", &process), 1);
        }
        assert_int_equal(kill(process, SIGKILL), 0);
        /* A call may still be done before the process is gone. */
        enum hw_status status = HW_OK;
        for (int again = 0; again < 100000 && !status; again++)
            status = compute(queue, 1.0f, y);
        assert_int_equal(status, HW_LOST);
        assert_non_null(strstr(hw_message(), turn ? "watches over it was killed"
                                                  : "it was killed (signal 9)"));
        check_computes(open_queue(context, "cpu"));
        hw_close(context);
    }
}

/* Garbage in all memory that both have, again and again: the results are lost, but nothing else. */
static void test_scribble(void **state)
{
    float y[N];
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue"),
                    *other = open_queue(context, "cpu");
    (void)state;
    check_computes(queue);
    const pid_t process = process_of(context, "rogue", NULL);
    float x[N] = { ACT_SCRIBBLE };
    hung = process; /* a call that waits for ever does no harm: it ends with the process */
    signal(SIGALRM, kill_hung);
    alarm(2);
    hw_silu(queue, &(struct hw_silu){ .x = on_host(x), .y = on_host(y) });
    for (int turn = 0; turn < 200 && hw_queue_wait(queue) != HW_LOST; turn++)
        hw_silu(queue, &(struct hw_silu){ .x = on_host(x), .y = on_host(y) });
    alarm(0);
    signal(SIGALRM, SIG_DFL);
    check_computes(other);
    hw_close(context);
    assert_true(kill(process, 0));
}

/* Closed files do not matter until one is needed. */
static void test_close(void **state)
{
    float y[N];
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue");
    struct hw_buffer *buffer;
    (void)state;
    compute(queue, ACT_CLOSE, y);
    const enum hw_status status = hw_buffer_alloc(device_of(context, "rogue"), 64 << 20,
                                                  HW_BUFFER_HOST_VISIBLE, &buffer);
    assert_int_equal(status, HW_LOST);
    assert_non_null(strstr(hw_message(), "closed files of its process"));
    check_computes(open_queue(context, "cpu"));
    hw_close(context);
}

/* Without a descriptor for shared memory there is none; all else goes on. */
static void test_no_files(void **state)
{
    float y[N];
    struct hw_context *context = open_with("rogue", both, NULL);
    struct hw_queue *queue = open_queue(context, "rogue");
    struct hw_buffer *buffer;
    (void)state;
    compute(queue, ACT_NO_FILES, y);
    assert_int_equal(hw_buffer_alloc(device_of(context, "rogue"), 64 << 20,
                                     HW_BUFFER_HOST_VISIBLE, &buffer),
                     HW_NO_MEMORY);
    assert_non_null(strstr(hw_message(), "no descriptor left"));
    check_computes(queue);
    hw_close(context);
}

/* ---- the application ---- */

static void test_fork(void **state)
{
    struct hw_context *context = open_with("cpu", CPU, NULL);
    struct hw_queue *queue = open_queue(context, "cpu");
    (void)state;
    check_computes(queue);
    const pid_t child = fork();
    if (!child) {
        float y[N];
        const bool good = compute(queue, 1.0f, y) == HW_FORKED;
        hw_close(context);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_computes(queue);
    hw_close(context);
}

/* The application ends without a word. */
static void test_outlived(void **state)
{
    int ends[2];
    pid_t process;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (!child) {
        struct hw_context *context = open_with("cpu", CPU, NULL);
        check_computes(open_queue(context, "cpu"));
        process = process_of(context, "cpu", NULL);
        _exit(write(ends[1], &process, sizeof process) == sizeof process ? 0 : 1);
    }
    close(ends[1]); /* so that the read ends if the child fails */
    assert_int_equal(read(ends[0], &process, sizeof process), sizeof process);
    waitpid(child, NULL, 0);
    for (int turn = 0; turn < 6000 && !kill(process, 0); turn++)
        usleep(10000); /* a generous end for what takes a millisecond */
    assert_true(kill(process, 0));
    close(ends[0]);
}

static unsigned count_entries(const char *path)
{
    DIR *directory = opendir(path);
    unsigned count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void test_flat(void **state)
{
    unsigned before = 0;
    (void)state;
    for (int turn = 0; turn < CYCLES; turn++) {
        struct hw_context *context = open_with("cpu", CPU, NULL);
        if (turn % 10 == 0)
            check_computes(open_queue(context, "cpu"));
        hw_close(context);
        if (!turn)
            before = count_entries("/proc/self/fd");
    }
    assert_int_equal(count_entries("/proc/self/fd"), before);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* no child is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computes),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_shares_memory),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_scribble),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_outlived),
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_fails_late),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_address_of_buffer),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_failed_record),
    };
    return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
