/* SPDX-License-Identifier: MIT */
/* nomem_objects.c - memory, queues, ops, events, graphs and kernels while memory runs out. */
#include "foreign.h"
#include "nomem.h"

#include <math.h>
#include <string.h>

#define ROWS 50
#define COLS 4

static float x[ROWS * COLS], y[ROWS * COLS];
static struct hw_tensor a, b, host_x, host_y;
static struct hw_queue *queue; /* of near, or the one that is prepared */
static struct hw_event *event, *later;
static struct hw_graph *graph;
static struct hw_kernel *kernel;
static struct foreign_queue theirs;
static struct foreign_memory memory;

static const int64_t extents[] = { ROWS, COLS };

static enum hw_status first_of(enum hw_status one, enum hw_status two)
{
    return one ? one : two;
}

/* ---- memory ---- */

static enum hw_status alloc_buffer(void)
{
    struct hw_buffer *buffer;
    const enum hw_status status = hw_buffer_alloc(scene.near, 5000, 0, &buffer);
    hw_buffer_free(buffer);
    return status;
}

static enum hw_status alloc_zeroed(void)
{
    struct hw_buffer *buffer;
    const enum hw_status status = hw_buffer_alloc(scene.cpu, 3 << 20, HW_BUFFER_ZEROED,
                                                  &buffer);
    hw_buffer_free(buffer);
    return status;
}

static enum hw_status alloc_tensor(void)
{
    struct hw_tensor t;
    const enum hw_status status = hw_tensor_alloc(scene.near, HW_BUFFER_ZEROED, HW_F32, 2,
                                                  extents, &t);
    hw_buffer_free(t.buffer);
    return status;
}

static void two_tensors_on(struct hw_queue *on)
{
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)(i % 13) - 6;
    memset(y, 0, sizeof y);
    queue = on;
    ok(hw_tensor_alloc(hw_queue_device(on), 0, HW_F32, 2, extents, &a));
    ok(hw_tensor_alloc(hw_queue_device(on), 0, HW_F32, 2, extents, &b));
    ok(hw_tensor_write(on, &a, x, sizeof x));
    ok(hw_tensor_host(&host_x, x, HW_F32, 2, extents));
    ok(hw_tensor_host(&host_y, y, HW_F32, 2, extents));
    ok(hw_queue_wait(on));
}

static void near_tensors(void)
{
    two_tensors_on(scene.on_near);
}

static void cpu_tensors(void)
{
    two_tensors_on(scene.on_cpu);
}

/* Freeing cannot fail. The second call has nothing to free. */
static enum hw_status free_buffer(void)
{
    hw_buffer_free(a.buffer);
    a.buffer = NULL;
    return HW_OK;
}

static enum hw_status free_after(void)
{
    hw_buffer_free_after(a.buffer, queue);
    a.buffer = NULL;
    return hw_queue_wait(queue);
}

static void their_memory(void)
{
    static unsigned char cells[256];
    memory = (struct foreign_memory){ sizeof cells, cells };
}

static enum hw_status import_buffer(void)
{
    struct hw_buffer *buffer;
    const enum hw_status status =
        hw_buffer_import(scene.one,
                         &(struct hw_import){ .size = sizeof(struct hw_import),
                                              .kind = FOREIGN_MEMORY,
                                              .handle = &memory,
                                              .bytes = 128 },
                         &buffer);
    hw_buffer_free(buffer);
    return status;
}

static void foreign_tensors(void)
{
    two_tensors_on(scene.on_one);
    const int64_t all = ROWS * COLS;
    ok(hw_tensor_reshape(&a, &a, 1, &all));
    ok(hw_tensor_reshape(&b, &b, 1, &all));
}

static enum hw_status export_buffer(void)
{
    struct hw_import desc = { .size = sizeof desc };
    return hw_buffer_export(a.buffer, FOREIGN_MEMORY, &desc);
}

static enum hw_status trim(void)
{
    return hw_pool_trim(hw_queue_device(queue));
}

/* ---- moving ---- */

static enum hw_status same_as(const float *wanted)
{
    for (int i = 0; i < ROWS * COLS; i++)
        if (fabsf(y[i] - wanted[i]) > 1e-5f * (1 + fabsf(wanted[i])))
            return HW_INTERNAL;
    return HW_OK;
}

static enum hw_status write_and_read(void)
{
    enum hw_status status;
    memset(y, 0, sizeof y);
    if ((status = hw_tensor_write(queue, &b, x, sizeof x)) ||
        (status = hw_tensor_read(queue, &b, y, sizeof y)) ||
        (status = hw_queue_wait(queue)))
        return status;
    return same_as(x);
}

/* Not contiguous: the elements take the slow path. */
static enum hw_status write_and_read_columns(void)
{
    struct hw_tensor turned;
    enum hw_status status;
    memset(y, 0, sizeof y);
    if ((status = hw_tensor_transpose(&turned, &b, 0, 1)) ||
        (status = hw_tensor_write(queue, &turned, x, sizeof x)) ||
        (status = hw_tensor_read(queue, &turned, y, sizeof y)) ||
        (status = hw_queue_wait(queue)))
        return status;
    return same_as(x);
}

static enum hw_status copy_far(void)
{
    struct hw_tensor far;
    enum hw_status status;
    memset(y, 0, sizeof y);
    if ((status = hw_tensor_alloc(scene.one, 0, HW_F32, 2, extents, &far)))
        return status;
    if (!(status = hw_copy(scene.on_one, &(struct hw_copy){ .src = a, .dst = far })))
        status = hw_tensor_read(scene.on_one, &far, y, sizeof y);
    const enum hw_status waited = hw_queue_wait(scene.on_one);
    hw_buffer_free(far.buffer);
    status = first_of(status, waited);
    return status ? status : same_as(x);
}

static enum hw_status pack(void)
{
    struct hw_tensor packed;
    enum hw_status status = hw_tensor_pack(queue, &a, &packed);
    status = first_of(status, hw_queue_wait(queue));
    hw_buffer_free(packed.buffer);
    return status;
}

static enum hw_status discard(void)
{
    const enum hw_status status = hw_queue_record(queue);
    if (status)
        return status;
    const enum hw_status discarded = hw_tensor_discard(queue, &b),
                         ended = hw_queue_end(queue, &graph);
    hw_graph_free(graph);
    graph = NULL;
    return first_of(discarded, ended);
}

/* ---- ops ---- */

static enum hw_status silu_to_host(const struct hw_tensor *from)
{
    float wanted[ROWS * COLS];
    enum hw_status status;
    memset(y, 0, sizeof y);
    if ((status = hw_silu(queue, &(struct hw_silu){ .x = *from, .y = host_y })) ||
        (status = hw_queue_wait(queue)))
        return status;
    for (int i = 0; i < ROWS * COLS; i++)
        wanted[i] = x[i] / (1 + expf(-x[i]));
    return same_as(wanted);
}

/* From device memory to staged host memory. */
static enum hw_status submit_staged(void)
{
    return silu_to_host(&a);
}

static enum hw_status submit_from_host(void)
{
    return silu_to_host(&host_x);
}

/* The device has no such op: the CPU computes it. */
static enum hw_status submit_elsewhere(void)
{
    float wanted[ROWS * COLS];
    enum hw_status status;
    memset(y, 0, sizeof y);
    if ((status = hw_mul(queue, &(struct hw_mul){ .a = a, .b = a, .y = b })) ||
        (status = hw_tensor_read(queue, &b, y, sizeof y)) ||
        (status = hw_queue_wait(queue)))
        return status;
    for (int i = 0; i < ROWS * COLS; i++)
        wanted[i] = x[i] * x[i];
    return same_as(wanted);
}

/* Copies views to contiguous memory first, then computes a product that needs workspace. */
static enum hw_status submit_views(void)
{
    struct hw_tensor turned;
    enum hw_status status;
    if ((status = hw_tensor_transpose(&turned, &a, 0, 1)))
        return status;
    struct hw_tensor product;
    const int64_t square[] = { COLS, COLS };
    if ((status = hw_tensor_alloc(hw_queue_device(queue), 0, HW_F32, 2, square, &product)))
        return status;
    status = hw_matmul(queue, &(struct hw_matmul){ .a = turned, .b = a, .c = product });
    status = first_of(status, hw_queue_wait(queue));
    hw_buffer_free(product.buffer);
    return status;
}

static enum hw_status sleep_now(void)
{
    const struct hw_arg ms = { .kind = HW_ARG_INT, .i = 1 };
    return first_of(hw_extension_call(queue, "discrete.sleep", &ms, 1),
                    hw_queue_wait(queue));
}

static enum hw_status wait_now(void)
{
    return hw_queue_wait(queue);
}

static void pending(void)
{
    near_tensors();
    ok(hw_silu(queue, &(struct hw_silu){ .x = a, .y = b }));
    ok(hw_mul(queue, &(struct hw_mul){ .a = a, .b = a, .y = b }));
}

/* ---- queues ---- */

static enum hw_status open_queue_on(struct hw_device *device)
{
    struct hw_queue *made;
    const struct hw_queue_options options = { .size = sizeof options,
                                              .kernel = "portable" };
    const enum hw_status status = hw_queue_open(device, &options, &made);
    hw_queue_close(made);
    return status;
}

static enum hw_status open_near(void)
{
    return open_queue_on(scene.near);
}

static enum hw_status open_cpu(void)
{
    return open_queue_on(scene.cpu);
}

static enum hw_status import_queue(void)
{
    struct hw_queue *made;
    const enum hw_status status = hw_queue_import(scene.one, NULL, FOREIGN_QUEUE, &theirs,
                                                  &made);
    hw_queue_close(made);
    return status;
}

static enum hw_status export_queue(void)
{
    void *handle;
    return hw_queue_export(scene.on_one, FOREIGN_QUEUE, &handle);
}

static int32_t count_call(void *user, void *handle)
{
    (void)handle;
    ++*(int *)user;
    return HW_OK;
}

static int made_calls;

static enum hw_status call_on_queue(void)
{
    return hw_queue_call(scene.on_one, FOREIGN_QUEUE, count_call, &made_calls);
}

static enum hw_status close_queue(void)
{
    hw_queue_close(queue);
    if (queue == scene.on_near)
        scene.on_near = NULL;
    queue = NULL;
    return HW_OK;
}

/* ---- events ---- */

static void two_events(void)
{
    near_tensors();
    ok(hw_event_create(scene.near, 0, &event));
    ok(hw_event_create(scene.near, 0, &later));
}

static enum hw_status create_event(void)
{
    struct hw_event *made;
    const enum hw_status status = hw_event_create(scene.near, HW_EVENT_TIMING, &made);
    hw_event_free(made);
    return status;
}

static enum hw_status record_event(void)
{
    const enum hw_status status = hw_event_record(event, queue);
    return status ? status : hw_event_sync(event);
}

static void recorded(void)
{
    two_events();
    ok(hw_silu(queue, &(struct hw_silu){ .x = a, .y = b }));
    ok(hw_event_record(event, queue));
}

/* A wait on the event's own backend, and one on another. */
static enum hw_status wait_for_event(void)
{
    enum hw_status status = hw_event_wait(event, scene.on_near);
    if (!status)
        status = hw_event_wait(event, scene.on_cpu);
    return status;
}

static enum hw_status sync_event(void)
{
    return hw_event_sync(event);
}

static enum hw_status query_event(void)
{
    const enum hw_status status = hw_event_query(event);
    return status == HW_NOT_READY ? HW_OK : status;
}

static void called(void *user)
{
    ++*(int *)user;
}

static int made_callbacks;

static enum hw_status call_back(void)
{
    const enum hw_status status = hw_event_callback(event, called, &made_callbacks);
    return status ? status : hw_event_sync(event);
}

static void timed(void)
{
    const struct hw_queue_options options = { .size = sizeof options,
                                              .flags = HW_QUEUE_TIMING };
    ok(hw_queue_open(scene.near, &options, &queue));
    ok(hw_event_create(scene.near, HW_EVENT_TIMING, &event));
    ok(hw_event_create(scene.near, HW_EVENT_TIMING, &later));
    ok(hw_event_record(event, queue));
    ok(hw_event_record(later, queue));
    ok(hw_queue_wait(queue));
}

static enum hw_status elapsed(void)
{
    double ms;
    return hw_event_elapsed(event, later, &ms);
}

static enum hw_status free_event(void)
{
    hw_event_free(event);
    event = NULL;
    return HW_OK;
}

/* ---- graphs ---- */

/* A graph in two parts: the plugin builds one, the CPU computes the other. */
static enum hw_status record_graph(void)
{
    enum hw_status status = hw_queue_record(queue);
    graph = NULL;
    if (status)
        return status;
    const enum hw_status steps[] = {
        hw_tensor_write(queue, &a, x, sizeof x),
        hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = b }),
        hw_mul(queue, &(struct hw_mul){ .a = b, .b = a, .y = b }),
        hw_tensor_read(queue, &b, y, sizeof y),
    };
    for (int i = 0; i < 4 && !status; i++)
        status = steps[i];
    return first_of(status, hw_queue_end(queue, &graph));
}

static enum hw_status launch(void)
{
    float wanted[ROWS * COLS];
    enum hw_status status;
    memset(y, 0, sizeof y);
    if ((status = hw_graph_launch(graph, queue)) || (status = hw_queue_wait(queue)))
        return status;
    for (int i = 0; i < ROWS * COLS; i++)
        wanted[i] = 2 * x[i] * x[i];
    return same_as(wanted);
}

static enum hw_status record_and_free(void)
{
    const enum hw_status status = record_graph();
    hw_graph_free(graph);
    graph = NULL;
    return status;
}

static void near_graph(void)
{
    near_tensors();
    ok(record_graph());
}

static void cpu_graph(void)
{
    cpu_tensors();
    ok(record_graph());
}

static enum hw_status graph_info(void)
{
    struct hw_graph_info info = { .size = sizeof info };
    return hw_graph_info(graph, &info);
}

static enum hw_status free_graph(void)
{
    hw_graph_free(graph);
    graph = NULL;
    return HW_OK;
}

/* ---- kernels ---- */

static const struct hw_user_kernel doubling = { .size = sizeof doubling,
                                                .group = 64,
                                                .name = "mine",
                                                .signature = "x",
                                                .source = "double" };

static enum hw_status create_kernel(void)
{
    struct hw_kernel *made;
    const enum hw_status status = hw_kernel_create(scene.one, &doubling, &made);
    hw_kernel_free(made);
    return status;
}

static void kernel_there(void)
{
    foreign_tensors();
    ok(hw_kernel_create(scene.one, &doubling, &kernel));
}

static enum hw_status launch_kernel(void)
{
    const struct hw_arg arg = { .kind = HW_ARG_TENSOR, .tensor = &a };
    return first_of(hw_kernel_launch(queue, kernel, 1, &arg, 1), hw_queue_wait(queue));
}

static enum hw_status launch_kernel_3d(void)
{
    const uint64_t groups[] = { 1, 2, 3 };
    const struct hw_arg arg = { .kind = HW_ARG_TENSOR, .tensor = &a };
    return first_of(hw_kernel_launch_3d(queue, kernel, groups, &arg, 1),
                    hw_queue_wait(queue));
}

static enum hw_status free_kernel(void)
{
    hw_kernel_free(kernel);
    kernel = NULL;
    return HW_OK;
}

const struct trial objects[] = {
    { "hw_buffer_alloc", NULL, alloc_buffer, 0 },
    { "hw_buffer_alloc", NULL, alloc_zeroed, 0 },
    { "hw_tensor_alloc", NULL, alloc_tensor, 0 },
    { "hw_buffer_free", near_tensors, free_buffer, 0 },
    { "hw_buffer_free_after", near_tensors, free_after, 0 },
    { "hw_buffer_import", their_memory, import_buffer, 0 },
    { "hw_buffer_export", foreign_tensors, export_buffer, 0 },
    { "hw_pool_trim", near_tensors, trim, 0 },
    { "hw_tensor_write", near_tensors, write_and_read, 0 },
    { "hw_tensor_read", cpu_tensors, write_and_read, 0 },
    { "hw_tensor_write", near_tensors, write_and_read_columns, 0 },
    { "hw_tensor_pack", near_tensors, pack, 0 },
    { "hw_tensor_pack", cpu_tensors, pack, 0 },
    { "hw_tensor_discard", near_tensors, discard, 0 },
    { "hw_submit", near_tensors, copy_far, 0 },
    { "hw_submit", near_tensors, submit_staged, 0 },
    { "hw_submit", near_tensors, submit_from_host, 0 },
    { "hw_submit", near_tensors, submit_elsewhere, 0 },
    { "hw_submit", near_tensors, submit_views, 0 },
    { "hw_submit", cpu_tensors, submit_views, 0 },
    { "hw_extension_call", near_tensors, sleep_now, 0 },
    { "hw_queue_open", NULL, open_near, 0 },
    { "hw_queue_open", NULL, open_cpu, 0 },
    { "hw_queue_import", NULL, import_queue, 0 },
    { "hw_queue_export", NULL, export_queue, 0 },
    { "hw_queue_call", NULL, call_on_queue, 0 },
    { "hw_queue_wait", pending, wait_now, 0 },
    { "hw_queue_close", pending, close_queue, 0 },
    { "hw_event_create", NULL, create_event, 0 },
    { "hw_event_record", two_events, record_event, 0 },
    { "hw_event_wait", recorded, wait_for_event, 0 },
    { "hw_event_sync", recorded, sync_event, 0 },
    { "hw_event_query", recorded, query_event, 0 },
    { "hw_event_callback", recorded, call_back, 0 },
    { "hw_event_elapsed", timed, elapsed, 0 },
    { "hw_event_free", recorded, free_event, 0 },
    { "hw_queue_record", near_tensors, record_and_free, 0 },
    { "hw_queue_end", cpu_tensors, record_and_free, 0 },
    { "hw_graph_launch", near_graph, launch, 0 },
    { "hw_graph_launch", cpu_graph, launch, 0 },
    { "hw_graph_info", near_graph, graph_info, 0 },
    { "hw_graph_free", near_graph, free_graph, 0 },
    { "hw_kernel_create", NULL, create_kernel, 0 },
    { "hw_kernel_launch", kernel_there, launch_kernel, 0 },
    { "hw_kernel_launch_3d", kernel_there, launch_kernel_3d, 0 },
    { "hw_kernel_free", kernel_there, free_kernel, 0 },
    { 0 },
};
