/* SPDX-License-Identifier: MIT */
/* test_order.c - order and time: asynchronous work, events, recorded graphs, errors that
 * arrive late, lost devices, forks, and closing a context with objects still open. */
#define _POSIX_C_SOURCE 200809L
#include "world.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;

static int open_world(void **state)
{
    (void)state;
    world_open(&w, NULL, NULL);
    return 0;
}

/* Tests free nothing: closing the context frees all they made. */
static int close_world(void **state)
{
    (void)state;
    world_close(&w);
    return 0;
}

static void extension(struct hw_queue *queue, const char *name, int64_t argument)
{
    const struct hw_arg arg = { .kind = HW_ARG_INT, .i = argument };
    ok(hw_extension_call(queue, name, &arg, strcmp(name, "discrete.lose") == 0 ? 0 : 1));
}

/* ---- events ---- */

static void events_pass_in_order(void **state)
{
    struct hw_event *event;
    (void)state;
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_event_query(event)); /* never recorded: passed */
    ok(hw_event_sync(event));
    hold_sleepers();
    extension(w.on_near, "discrete.sleep", 50);
    ok(hw_event_record(event, w.on_near));
    assert_int_equal(hw_event_query(event), HW_NOT_READY);
    release_sleepers();
    ok(hw_event_sync(event));
    ok(hw_event_query(event));
    hw_event_free(event);
    hw_event_free(NULL);
}

static void queues_wait_for_events(void **state)
{
    struct hw_event *event;
    struct hw_queue *second;
    float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 }, got[4];
    (void)state;
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_queue_open(w.near, NULL, &second));
    struct hw_tensor a = put(w.on_near, x, 1, 4), b = put(w.on_near, zero, 1, 4),
                     c = put(w.on_near, zero, 1, 4);
    extension(w.on_near, "discrete.sleep", 50);
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_wait(event, second));
    ok(hw_add(second, &(struct hw_add){ .a = b, .b = b, .y = c }));
    get(second, &c, got);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 4.0f * x[i]);
    /* Across devices the host waits. */
    extension(w.on_near, "discrete.sleep", 20);
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_wait(event, w.on_cpu));
    ok(hw_event_query(event));
    fails(HW_INVALID, "discrete:1", hw_event_record(event, w.on_far));
}

static atomic_int called;

static void callback(void *user)
{
    atomic_fetch_add(&called, *(int *)user);
}

/* Between devices of one plugin the plugin makes the queue wait. If it cannot, the host
 * waits. */
static void queues_wait_for_events_of_another_device(void **state)
{
    struct hw_event *near, *far;
    float x[4] = { 1, 2, 3, 4 };
    int once = 1;
    (void)state;
    ok(hw_event_create(w.near, 0, &near));
    ok(hw_event_create(w.far, 0, &far));
    hold_sleepers();
    extension(w.on_near, "discrete.sleep", 200);
    ok(hw_event_record(near, w.on_near));
    ok(hw_event_wait(near, w.on_far));
    assert_int_equal(hw_event_query(near), HW_NOT_READY);
    release_sleepers();
    ok(hw_event_record(far, w.on_far));
    ok(hw_event_sync(far));
    ok(hw_event_query(near));
    extension(w.on_far, "discrete.sleep", 50);
    ok(hw_event_record(far, w.on_far));
    fails(HW_INVALID, "NULL", hw_event_wait(NULL, w.on_near));
    ok(hw_event_wait(far, w.on_near));
    ok(hw_event_query(far));
    assert_non_null(strstr(hw_message(), "NULL")); /* nothing went wrong since */
    /* The device of the queue is lost, and no call has reported it yet. */
    struct hw_tensor a = put(w.on_near, x, 1, 4);
    atomic_store(&called, 0);
    extension(w.on_far, "discrete.sleep", 20);
    extension(w.on_far, "discrete.lose", 0);
    ok(hw_event_record(far, w.on_far));
    ok(hw_event_callback(far, callback, &once));
    while (!atomic_load(&called))
        sched_yield();
    fails(HW_LOST, "hw_event_wait on discrete:1", hw_event_wait(near, w.on_far));
    fails(HW_LOST, "device discrete:1 is lost", hw_queue_wait(w.on_far));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = a }));
    ok(hw_queue_wait(w.on_near));
}

static void callbacks_run_once(void **state)
{
    struct hw_event *event;
    int units = 1, tens = 10, hundreds = 100;
    (void)state;
    atomic_store(&called, 0);
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_event_callback(event, callback, &units)); /* never recorded: passed */
    assert_int_equal(atomic_load(&called), 1);
    extension(w.on_near, "discrete.sleep", 20);
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_callback(event, callback, &tens));
    ok(hw_event_callback(event, callback,
                         &tens)); /* the same callback, added a second time */
    ok(hw_event_callback(event, callback, &hundreds));
    ok(hw_event_sync(event));
    assert_int_equal(atomic_load(&called), 121);
    ok(hw_event_callback(event, callback, &units)); /* already passed: called at once */
    assert_int_equal(atomic_load(&called), 122);
    fails(HW_INVALID, "fn", hw_event_callback(event, NULL, NULL));
}

/* An event may be recorded again or freed while a queue waits for it. The queue still waits
 * for the work recorded before. */
static void waits_outlive_their_event(void **state)
{
    struct hw_event *event;
    struct hw_queue *slow, *second;
    float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 }, got[4];
    int units = 1, tens = 10;
    (void)state;
    atomic_store(&called, 0);
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_queue_open(w.near, NULL, &slow));
    ok(hw_queue_open(w.near, NULL, &second));
    struct hw_tensor a = put(w.on_near, x, 1, 4), b = put(w.on_near, zero, 1, 4),
                     c = put(w.on_near, zero, 1, 4);
    hold_sleepers();
    extension(slow, "discrete.sleep", 50);
    ok(hw_add(slow, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_event_record(event, slow));
    ok(hw_event_callback(event, callback, &tens));
    ok(hw_event_wait(event, second));
    /* On another queue, where the second record passes before the first one. */
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_callback(event, callback, &units));
    ok(hw_event_sync(event));
    assert_int_equal(atomic_load(&called), 1);
    release_sleepers();
    ok(hw_event_query(event));
    hw_event_free(event);
    ok(hw_add(second, &(struct hw_add){ .a = b, .b = b, .y = c }));
    get(second, &c, got);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 4.0f * x[i]);
    ok(hw_queue_wait(slow));
    assert_int_equal(atomic_load(&called), 11);
    ok(hw_event_create(w.near, 0, &event));
    extension(slow, "discrete.sleep", 20);
    ok(hw_event_record(event, slow));
    ok(hw_event_callback(event, callback, &tens));
    hw_event_free(event); /* before it has passed */
    world_close(&w);
    assert_int_equal(atomic_load(&called), 21);
    world_open(&w, NULL, NULL);
}

static void callbacks_run_when_the_device_is_lost(void **state)
{
    struct hw_event *event;
    int units = 1;
    (void)state;
    atomic_store(&called, 0);
    ok(hw_event_create(w.far, 0, &event));
    extension(w.on_far, "discrete.sleep", 20);
    extension(w.on_far, "discrete.lose", 0);
    ok(hw_event_record(event, w.on_far));
    ok(hw_event_callback(event, callback, &units));
    fails(HW_LOST, "discrete:1", hw_queue_wait(w.on_far));
    fails(HW_LOST, "discrete:1", hw_event_callback(event, callback, &units));
    hw_event_free(event);
    assert_int_equal(atomic_load(&called), 1);
}

static struct hw_event *timed_event(uint32_t flags, struct hw_queue *queue)
{
    struct hw_event *event;
    ok(hw_event_create(hw_queue_device(queue), flags, &event));
    ok(hw_event_record(event, queue));
    return event;
}

/* Timing needs a flag of both the event and its queue when they are created, on every
 * device. */
static void timing_is_enabled_at_creation(void **state)
{
    const struct hw_queue_options options = { .size = sizeof options,
                                              .flags = HW_QUEUE_TIMING };
    struct hw_device *devices[] = { w.near, w.cpu };
    struct hw_queue *plain[] = { w.on_near, w.on_cpu };
    struct hw_event *never, *start, *end;
    double ms;
    (void)state;
    fails(HW_INVALID, "unknown flags 0x2", hw_event_create(w.near, 2, &start));
    assert_null(start);
    for (int i = 0; i < 2; i++) {
        struct hw_queue *queue;
        ok(hw_queue_open(devices[i], &options, &queue));
        ok(hw_event_create(devices[i], HW_EVENT_TIMING, &never));
        start = timed_event(HW_EVENT_TIMING, queue);
        fails(HW_INVALID, "end event was never recorded",
              hw_event_elapsed(start, never, &ms));
        fails(HW_INVALID, "start event was created without HW_EVENT_TIMING",
              hw_event_elapsed(timed_event(0, queue), start, &ms));
        end = timed_event(HW_EVENT_TIMING, plain[i]);
        fails(HW_INVALID, "end event was recorded on a queue without HW_QUEUE_TIMING",
              hw_event_elapsed(start, end, &ms));
        hold_sleepers();
        if (i == 0)
            extension(queue, "discrete.sleep", 20);
        ok(hw_event_record(end, queue));
        if (i == 0)
            assert_int_equal(hw_event_elapsed(start, end, &ms), HW_NOT_READY);
        release_sleepers();
        ok(hw_event_sync(end));
        ms = -1.0;
        ok(hw_event_elapsed(start, end, &ms));
        assert_true(ms >= 0.0);
    }
}

/* Host tensors that the queue wrote before an event can be read after waiting for that
 * event. */
static void events_cover_host_tensors(void **state)
{
    enum { ROWS = 64 };
    static float x[ROWS * 2], y[ROWS * 2];
    struct hw_event *event;
    (void)state;
    for (int i = 0; i < ROWS * 2; i++)
        x[i] = 1.0f;
    struct hw_tensor a = host_f32(x, (int64_t)ROWS, (int64_t)2, END),
                     b = host_f32(y, (int64_t)ROWS, (int64_t)2, END);
    ok(hw_tensor_slice(&a, &a, 1, 0, 1));
    ok(hw_tensor_slice(&b, &b, 1, 0, 1));
    ok(hw_event_create(w.near, 0, &event));
    extension(w.on_near, "discrete.sleep", 20);
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_sync(event));
    for (int r = 0; r < ROWS; r++)
        assert_true(y[2 * r] == 2.0f && y[2 * r + 1] == 0.0f);
}

/* The calls that the plugin of `near` received. */
static struct hw_plugin its_own;
static uint32_t opened_with;
static bool is_idle;

static int32_t open_seen(void *device, const struct hw_queue_desc *desc, void **queue)
{
    opened_with = desc->flags;
    return its_own.queue_open(device, desc, queue);
}

static int32_t wait_seen(void *queue)
{
    is_idle = true;
    return its_own.queue_wait(queue);
}

/* Results that a transfer writes need no more from the host. */
static void recording_waits_for_no_result(void **state)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    struct hw_event *event;
    (void)state;
    const struct hw_tensor a = host_f32(x, (int64_t)4, END),
                           b = host_f32(y, (int64_t)4, END);
    its_own = w.near->plugin->table;
    w.near->plugin->table.queue_wait = wait_seen;
    ok(hw_event_create(w.near, 0, &event));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = b }));
    is_idle = false;
    ok(hw_event_record(event, w.on_near));
    ok(hw_event_sync(event));
    assert_false(is_idle);
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == 2.0f * x[i]);
}

static int32_t kernel_build(void *device, const struct hw_user_kernel *desc, void **kernel)
{
    (void)desc;
    *kernel = device;
    return HW_OK;
}

static int32_t kernel_launch(void *queue, void *kernel, uint64_t groups,
                             const struct hw_arg *args, uint32_t count)
{
    (void)queue, (void)kernel, (void)groups, (void)args, (void)count;
    return HW_OK;
}

#define idle_after(call)                                                                   \
    do {                                                                                   \
        is_idle = false;                                                                   \
        ok(call);                                                                          \
        assert_true(is_idle);                                                              \
    } while (0)

/* The library waits for each submission. The plugin does not see HW_QUEUE_SYNCHRONOUS. */
static void synchronous_queues(void **state)
{
    const struct hw_queue_options options = {
        .size = sizeof options, .flags = HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING
    };
    const struct hw_user_kernel desc = {
        .size = sizeof desc, .group = 1, .name = "k", .signature = "", .source = "k"
    };
    const struct hw_arg ms = { .kind = HW_ARG_INT, .i = 1 };
    struct hw_plugin *table = &w.near->plugin->table;
    struct hw_queue *queue;
    struct hw_graph *graph;
    struct hw_kernel *kernel;
    struct hw_tensor packed;
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    (void)state;
    const struct hw_tensor a = host_f32(x, (int64_t)1, (int64_t)4, END),
                           b = host_f32(y, (int64_t)1, (int64_t)4, END),
                           c = put(w.on_near, x, 1, 4), d = put(w.on_near, x, 1, 4),
                           far = put(w.on_far, x, 1, 4);
    const struct hw_add host = { .a = a, .b = a, .y = b },
                        near = { .a = c, .b = c, .y = d };
    its_own = *table;
    table->queue_open = open_seen;
    table->queue_wait = wait_seen;
    table->kernel_build = kernel_build;
    table->kernel_launch = kernel_launch;
    ok(hw_queue_open(w.near, &options, &queue));
    assert_int_equal(opened_with, HW_QUEUE_TIMING);
    idle_after(hw_add(queue, &host));
    assert_true(y[3] == 8.0f);
    idle_after(hw_add(queue, &near));
    idle_after(
        hw_mul(queue, &(struct hw_mul){ .a = c, .b = c, .y = d })); /* on another device */
    idle_after(copy_between(queue, &d, &c));
    idle_after(copy_between(queue, &d, &a));
    idle_after(copy_between(queue, &b, &d));
    idle_after(copy_between(queue, &far, &d));
    idle_after(hw_extension_call(queue, "discrete.sleep", &ms, 1));
    idle_after(hw_tensor_pack(queue, &c, &packed));
    ok(hw_kernel_create(w.near, &desc, &kernel));
    idle_after(hw_kernel_launch(queue, kernel, 1, NULL, 0));
    /* Recording does not wait. A launch waits, for built and for replayed nodes. */
    is_idle = false;
    for (int i = 0; i < 2; i++) {
        struct hw_queue *recorder = i ? queue : w.on_near;
        ok(hw_queue_record(recorder));
        ok(hw_add(recorder, &near));
        ok(copy_between(recorder, &d, &c));
        ok(hw_queue_end(recorder, &graph));
        assert_false(is_idle);
        idle_after(hw_graph_launch(graph, queue));
        is_idle = false;
    }
    /* The call returns the errors of its work. */
    const struct hw_arg lost = { .kind = HW_ARG_INT, .i = HW_DRIVER };
    fails(HW_DRIVER, "when its turn came",
          hw_extension_call(queue, "discrete.fail", &lost, 1));
}

/* ---- graphs ---- */

static void graphs_are_built_and_replayed(void **state)
{
    struct hw_graph *graph;
    float x[4] = { 1, 2, 3, 4 }, got[4];
    struct hw_graph_info info = { .size = sizeof info };
    (void)state;
    struct hw_tensor a = put(w.on_near, x, 1, 4), b = put(w.on_near, x, 1, 4),
                     c = put(w.on_near, x, 1, 4);
    ok(hw_queue_record(w.on_near));
    fails(HW_INVALID, "already", hw_queue_record(w.on_near));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = b, .b = a, .y = b }));
    ok(hw_mul(w.on_near,
              &(struct hw_mul){ .a = b, .b = b, .y = c })); /* computed by another device */
    ok(copy_between(w.on_near, &a, &c));
    struct hw_tensor wrong = a;
    wrong.extent[1] = 3;
    fails(HW_INVALID, "y",
          hw_add(w.on_near, &(struct hw_add){ .a = a, .b = a, .y = wrong }));
    fails(HW_INVALID, "recording", hw_queue_wait(w.on_near));
    ok(hw_queue_end(w.on_near, &graph));
    fails(HW_INVALID, "not recording",
          hw_queue_end(w.on_near, &(struct hw_graph *){ NULL }));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 4);
    assert_int_equal(info.segments, 3);
    assert_int_equal(info.built, 2);
    get(w.on_near, &a, got); /* nothing has run yet */
    assert_memory_equal(got, x, sizeof x);
    const uint64_t before = calls(w.on_near, HW_OP_ADD).calls;
    ok(hw_graph_launch(graph, w.on_near)); /* a = (3a)^2 */
    get(w.on_near, &a, got);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 9.0f * x[i] * x[i]);
    ok(hw_graph_launch(graph, w.on_near));
    get(w.on_near, &a, got);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 9.0f * 81.0f * x[i] * x[i] * x[i] * x[i]);
    assert_int_equal(calls(w.on_near, HW_OP_ADD).calls, before + 4);
    fails(HW_INVALID, "cpu:0", hw_graph_launch(graph, w.on_cpu));
    hw_graph_free(graph);
    hw_graph_free(NULL);
}

/* A graph built by the plugin computes each op as the plugin's queue does. */
static void graphs_support_all_ops_of_the_plugin(void **state)
{
    struct hw_graph *graph = NULL;
    float x[4], zero[4] = { 0 }, got[2][4];
    (void)state;
    fill(x, 4);
    const struct hw_tensor a = put(w.on_near, x, 2, 2);
    for (int recorded = 0; recorded < 2; recorded++) {
        const struct hw_tensor b = put(w.on_near, zero, 2, 2),
                               c = put(w.on_near, zero, 2, 2),
                               d = put(w.on_near, zero, 2, 2),
                               e = put(w.on_near, zero, 2, 2);
        if (recorded)
            ok(hw_queue_record(w.on_near));
        ok(hw_silu(w.on_near, &(struct hw_silu){ .x = a, .y = b }));
        ok(hw_matmul(w.on_near, &(struct hw_matmul){ .a = a, .b = b, .c = c }));
        ok(hw_add(w.on_near, &(struct hw_add){ .a = b, .b = c, .y = d }));
        ok(hw_copy(w.on_near, &(struct hw_copy){ .src = d, .dst = e }));
        if (recorded) {
            ok(hw_queue_end(w.on_near, &graph));
            ok(hw_graph_launch(graph, w.on_near));
        }
        get(w.on_near, &e, got[recorded]);
    }
    hw_graph_free(graph);
    assert_memory_equal(got[1], got[0], sizeof got[0]);
    close_to(got[0][0], silu(x[0]) + x[0] * silu(x[0]) + x[1] * silu(x[2]));
}

/* Host tensors and views are staged and copied at each launch, with the current contents of
 * memory. */
static void graphs_with_a_cold_path(void **state)
{
    struct hw_graph *graph;
    float x[4] = { 1, 2, 3, 4 }, y[4];
    (void)state;
    const struct hw_tensor a = host_f32(x, (int64_t)4, END),
                           b = host_f32(y, (int64_t)4, END);
    for (int device = 0; device < 2; device++) {
        struct hw_queue *queue = device ? w.on_cpu : w.on_near;
        ok(hw_queue_record(queue));
        ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = b }));
        ok(hw_queue_end(queue, &graph));
        for (int round = 0; round < 3; round++) {
            x[2] = (float)round;
            ok(hw_graph_launch(graph, queue));
            ok(hw_queue_wait(queue));
            assert_true(y[2] == 2.0f * (float)round && y[3] == 8.0f);
        }
    }
}

/* An op that no device may compute is rejected when it is recorded, not at each launch. */
static void unsupported_ops_are_not_recorded(void **state)
{
    struct world v;
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    float x[4] = { 1, 2, 3, 4 };
    (void)state;
    world_open(&v, "error", NULL);
    const struct hw_tensor a = put(v.on_near, x, 1, 4);
    ok(hw_queue_record(v.on_near));
    fails(HW_UNSUPPORTED, "HW_FALLBACK=error",
          hw_mul(v.on_near, &(struct hw_mul){ .a = a, .b = a, .y = a }));
    assert_non_null(strstr(hw_message(), "mul (f32 f32 f32) on discrete:0"));
    ok(hw_add(v.on_near, &(struct hw_add){ .a = a, .b = a, .y = a }));
    ok(hw_queue_end(v.on_near, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 1);
    ok(hw_graph_launch(graph, v.on_near));
    ok(hw_queue_wait(v.on_near));
    world_close(&v);
    /* The last device has no fallback under any setting. */
    const struct hw_tensor row = put(w.on_cpu, x, 1, 4);
    ok(hw_queue_record(w.on_cpu));
    fails(HW_UNSUPPORTED, "no other device is left", rope_slowly(w.on_cpu, &row));
    ok(hw_queue_end(w.on_cpu, &graph));
}

/* ---- errors ---- */

static void late_errors_come_from_the_wait(void **state)
{
    (void)state;
    extension(w.on_near, "discrete.sleep", 10);
    extension(w.on_near, "discrete.fail", HW_DRIVER);
    fails(HW_DRIVER, "when its turn came", hw_queue_wait(w.on_near));
    assert_non_null(strstr(hw_message(), "discrete:0"));
    ok(hw_queue_wait(w.on_near)); /* reported once */
}

/* A wait inside the library does not discard late errors. */
static void late_errors_survive_inner_waits(void **state)
{
    float x[6] = { 0 };
    (void)state;
    struct hw_tensor a = put(w.on_near, x, 2, 3);
    extension(w.on_near, "discrete.fail", HW_DRIVER);
    fails(HW_DRIVER, "turn came",
          hw_mul(w.on_near, &(struct hw_mul){ .a = a, .b = a, .y = a }));
    fails(HW_DRIVER, "turn came", hw_queue_wait(w.on_near));
    ok(hw_queue_wait(w.on_near));
}

static void lost_devices_do_not_affect_others(void **state)
{
    struct hw_buffer *buffer;
    struct hw_event *event;
    struct hw_queue *queue;
    float x[4] = { 1, 2, 3, 4 };
    (void)state;
    struct hw_tensor a = put(w.on_far, x, 1, 4), b = put(w.on_near, x, 1, 4);
    ok(hw_event_create(w.far, 0, &event));
    extension(w.on_far, "discrete.lose", 0);
    fails(HW_LOST, "discrete:1", hw_queue_wait(w.on_far));
    fails(HW_LOST, "discrete:1",
          hw_add(w.on_far, &(struct hw_add){ .a = a, .b = a, .y = a }));
    fails(HW_LOST, "discrete:1", hw_buffer_alloc(w.far, 8, 0, &buffer));
    const struct hw_silu silu = { .x = a, .y = a };
    fails(HW_LOST, "discrete:1 is lost",
          hw_device_supports(w.far, HW_OP_SILU, &silu, sizeof silu));
    fails(HW_LOST, "discrete:1", hw_queue_open(w.far, NULL, &queue));
    fails(HW_LOST, "discrete:1", hw_event_record(event, w.on_far));
    fails(HW_LOST, "discrete:1", copy_between(w.on_near, &b, &a));
    ok(hw_add(w.on_near, &(struct hw_add){ .a = b, .b = b, .y = b }));
    ok(hw_queue_wait(w.on_near));
    assert_true(w.log_lines >= 1);
}

static void extension_arguments_are_checked(void **state)
{
    const struct hw_arg real = { .kind = HW_ARG_FLOAT, .f = 1.0 };
    (void)state;
    fails(HW_INVALID, "signature",
          hw_extension_call(w.on_near, "discrete.sleep", &real, 1));
    fails(HW_INVALID, "0 arguments",
          hw_extension_call(w.on_near, "discrete.sleep", NULL, 0));
    fails(HW_INVALID, "NULL", hw_extension_call(w.on_near, "discrete.sleep", NULL, 1));
    fails(HW_UNSUPPORTED, "no.such", hw_extension_call(w.on_near, "no.such", NULL, 0));
    fails(HW_UNSUPPORTED, "cpu:0", hw_extension_call(w.on_cpu, "discrete.sleep", &real, 1));
}

static void packed_weights(void **state)
{
    float a[4] = { 1, 2, 3, 4 }, b[6] = { 1, 2, 3, 4, 5, 6 }, zero[6] = { 0 }, got[6];
    struct hw_tensor packed, slice;
    (void)state;
    struct hw_tensor ta = put(w.on_near, a, 2, 2), tb = put(w.on_near, b, 2, 3),
                     c = put(w.on_near, zero, 2, 3);
    ok(hw_tensor_pack(w.on_near, &tb, &packed));
    assert_int_not_equal(packed.layout, 0);
    ok(hw_matmul(w.on_near, &(struct hw_matmul){ .a = ta, .b = packed, .c = c }));
    get(w.on_near, &c, got);
    const float expected[6] = { 9, 12, 15, 19, 26, 33 };
    assert_memory_equal(got, expected, sizeof got);
    /* Packed weights can be used only whole, as weights, and only on their device. */
    fails(HW_INVALID, "x (f32 [2, 3]): it is packed",
          hw_silu(w.on_near, &(struct hw_silu){ .x = packed, .y = tb }));
    fails(HW_INVALID, "it is packed",
          hw_matmul(w.on_near, &(struct hw_matmul){ .a = packed, .b = tb, .c = c }));
    fails(HW_INVALID, "packed", hw_tensor_slice(&slice, &packed, 0, 0, 1));
    fails(HW_INVALID, "packed", hw_tensor_pack(w.on_near, &packed, &slice));
    packed.extent[0] = 1;
    fails(HW_INVALID, "b",
          hw_matmul(w.on_near, &(struct hw_matmul){ .a = ta, .b = packed, .c = c }));
    struct hw_tensor batch = host_f32(b, (int64_t)1, (int64_t)2, (int64_t)3, END);
    fails(HW_UNSUPPORTED, "cpu:0", hw_tensor_pack(w.on_cpu, &batch, &slice));
}

/* ---- fork and close ---- */

static void children_get_forked_status(void **state)
{
    float x[4] = { 0 };
    struct hw_tensor a = host_f32(x, (int64_t)4, END);
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct hw_buffer *buffer;
        const bool good = hw_silu(w.on_cpu, &(struct hw_silu){ .x = a, .y = a }) ==
                              HW_FORKED &&
                          hw_queue_wait(w.on_near) == HW_FORKED &&
                          hw_buffer_alloc(w.cpu, 8, 0, &buffer) == HW_FORKED &&
                          strstr(hw_message(), "fork") != NULL;
        hw_queue_close(w.on_near);
        hw_close(w.context);
        _exit(good ? 0 : 1);
    }
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    ok(hw_silu(w.on_cpu, &(struct hw_silu){ .x = a, .y = a }));
}

static void closing_null_does_nothing(void **state)
{
    (void)state;
    hw_queue_close(NULL);
    hw_graph_free(NULL);
    hw_kernel_free(NULL);
    hw_close(NULL);
    hw_queue_close(w.on_far);
    fails(HW_INVALID, "NULL", hw_queue_wait(NULL));
    /* Close a queue that is recording and has pending work. */
    extension(w.on_near, "discrete.sleep", 20);
    ok(hw_queue_record(w.on_near));
    hw_queue_close(w.on_near);
}

static int32_t open_no_device(void *self, int32_t index, void **device)
{
    (void)self, (void)index, (void)device;
    return HW_OK;
}

static int32_t open_no_queue(void *device, const struct hw_queue_desc *desc, void **queue)
{
    (void)device, (void)desc, (void)queue;
    return HW_OK;
}

/* A plugin that forgets to return what it opened is named; NULL never reaches its functions. */
static void what_is_opened_is_returned(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "cpu",
                                        .plugin_path = getenv("HW_TEST_PLUGINS") };
    struct hw_context *context;
    struct hw_queue *queue;
    (void)state;
    w.near->plugin->table.queue_open = open_no_queue;
    fails(HW_INTERNAL, "open a queue on discrete:0: plugin discrete returned HW_OK without",
          hw_queue_open(w.near, NULL, &queue));
    assert_null(queue);
    ok(hw_open(&options, &context));
    struct hw_device *device = hw_device_default(context);
    device->plugin->table.device_open = open_no_device;
    fails(HW_INTERNAL, "open device cpu:0: plugin cpu returned HW_OK without a device",
          hw_queue_open(device, NULL, &queue));
    hw_close(context);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_pass_in_order),
        TEST(queues_wait_for_events),
        TEST(queues_wait_for_events_of_another_device),
        TEST(callbacks_run_once),
        TEST(waits_outlive_their_event),
        TEST(callbacks_run_when_the_device_is_lost),
        TEST(timing_is_enabled_at_creation),
        TEST(events_cover_host_tensors),
        TEST(recording_waits_for_no_result),
        TEST(synchronous_queues),
        TEST(graphs_are_built_and_replayed),
        TEST(graphs_support_all_ops_of_the_plugin),
        TEST(graphs_with_a_cold_path),
        TEST(unsupported_ops_are_not_recorded),
        TEST(late_errors_come_from_the_wait),
        TEST(late_errors_survive_inner_waits),
        TEST(lost_devices_do_not_affect_others),
        TEST(extension_arguments_are_checked),
        TEST(packed_weights),
        TEST(children_get_forked_status),
        TEST(closing_null_does_nothing),
        TEST(what_is_opened_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
