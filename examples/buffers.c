/* SPDX-License-Identifier: MIT */
/* buffers.c - device buffers, a graph and events: one layer y = silu(rmsnorm(x) W^T), recorded
 * once and launched for several inputs. docs/embedding.md explains it step by step. */
#include <hw/hw.h>
#include <hw/report.h>
#include <stdio.h>

enum { ROWS = 4, COLS = 64, OUT = 32, STEPS = 3 };

static float weight[OUT][COLS], input[ROWS][COLS], output[ROWS][OUT];

struct layer {
    struct hw_tensor x, normed, w, y; /* each in a buffer of its own, on the device */
    struct hw_graph *graph;
};

static enum hw_status allocate(struct hw_device *device, struct layer *layer)
{
    const int64_t x[2] = { ROWS, COLS }, w[2] = { OUT, COLS }, y[2] = { ROWS, OUT };
    enum hw_status status;
    if ((status = hw_tensor_alloc(device, 0, HW_F32, 2, x, &layer->x)) ||
        (status = hw_tensor_alloc(device, 0, HW_F32, 2, x, &layer->normed)) ||
        (status = hw_tensor_alloc(device, HW_BUFFER_READ_ONLY, HW_F32, 2, w, &layer->w)) ||
        (status = hw_tensor_alloc(device, 0, HW_F32, 2, y, &layer->y)))
        return status;
    return HW_OK;
}

/* The ops are checked now, and run at each launch of the graph. */
static enum hw_status record(struct hw_queue *queue, struct layer *layer)
{
    enum hw_status status = hw_queue_record(queue);
    if (status)
        return status;
    if ((status = hw_rmsnorm(
             queue,
             &(struct hw_rmsnorm){ .x = layer->x, .y = layer->normed, .eps = 1e-5f })) ||
        (status = hw_matmul(queue, &(struct hw_matmul){ .a = layer->normed,
                                                        .b = layer->w,
                                                        .c = layer->y,
                                                        .transpose_b = 1 })) ||
        (status = hw_silu(queue, &(struct hw_silu){ .x = layer->y, .y = layer->y })))
        return status;
    return hw_queue_end(queue, &layer->graph);
}

/* Upload, compute, download: all queued in this order, and waited for once. */
static enum hw_status run(struct hw_queue *queue, const struct layer *layer)
{
    enum hw_status status;
    if ((status = hw_tensor_write(queue, &layer->x, input, sizeof input)) ||
        (status = hw_graph_launch(layer->graph, queue)) ||
        (status = hw_tensor_read(queue, &layer->y, output, sizeof output)))
        return status;
    return hw_queue_wait(queue); /* `input` may be changed and `output` read after this */
}

static enum hw_status layers(struct hw_context *context)
{
    struct hw_device *device = hw_device_default(context);
    struct layer layer = { .graph = NULL };
    struct hw_queue *queue;
    enum hw_status status;

    if ((status = hw_queue_open(device, NULL, &queue)) ||
        (status = allocate(device, &layer)))
        return status;
    if ((status = hw_tensor_write(queue, &layer.w, weight, sizeof weight)) ||
        (status = record(queue, &layer)))
        return status;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * COLS; i++)
            input[i / COLS][i % COLS] = (float)((i + step) % 7) - 3;
        if ((status = run(queue, &layer)))
            return status;
        printf("step %d: %.4f %.4f %.4f\n", step, output[0][0], output[1][1],
               output[3][31]);
    }
    return HW_OK; /* hw_close() frees the graph, the buffers and the queue */
}

int main(void)
{
    struct hw_context *context;
    for (int i = 0; i < OUT * COLS; i++)
        weight[i / COLS][i % COLS] = (float)(i % 5) / 8;
    enum hw_status status = hw_open(NULL, &context);
    if (!status)
        status = layers(context);
    if (status)
        fprintf(stderr, "%s: %s\n", hw_status_name(status), hw_message());
    hw_close(context);
    return status != HW_OK;
}
