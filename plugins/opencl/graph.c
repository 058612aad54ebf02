/* SPDX-License-Identifier: MIT */
/* Graphs: each node is planned once, and has its own kernel, which keeps its arguments. Launching a
 * graph only enqueues its kernels. */
#include "opencl.h"

#include <stdlib.h>

struct graph {
    struct device *device;
    uint64_t workspace; /* bytes; the memory is the workspace of the launching queue */
    uint64_t bound;     /* the serial of that workspace; 0: never launched */
    uint32_t count;
    pthread_mutex_t lock; /* of the kernels: any queue may launch them */
    struct ready kernels[];
};

/* OpenCL has no queue that records. */
static int32_t refuse_calls(struct device *device, const struct hw_node *nodes,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].op == HW_NODE_CALL)
            return hw_fail(device->host, HW_UNSUPPORTED,
                           "OpenCL cannot record work that the application submits");
    return HW_OK;
}

static int32_t add(struct graph *graph, struct queue *queue, const struct hw_node *node)
{
    struct plan plan;
    struct stages stages;
    int32_t status = launch_plan(queue, node->op, node->args, &plan);
    if (!status)
        status = launch_prepare(queue, &plan, OWN_KERNEL, &stages);
    if (status)
        return status;
    for (uint32_t i = 0; i < stages.count; i++)
        graph->kernels[graph->count++] = stages.stage[i];
    if (plan.workspace > graph->workspace)
        graph->workspace = plan.workspace;
    return HW_OK;
}

int32_t graph_build(void *self, const struct hw_node *nodes, uint32_t count, void **out)
{
    struct queue *queue = self;
    struct device *device = queue->device;
    int32_t status = check_lost(device);
    if (!status)
        status = refuse_calls(device, nodes, count);
    if (status)
        return status;
    struct graph *graph =
        calloc(1, sizeof *graph + (size_t)count * MOST_STAGES * sizeof graph->kernels[0]);
    if (!graph)
        return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
    graph->device = device;
    pthread_mutex_init(&graph->lock, NULL);
    for (uint32_t i = 0; i < count && !status; i++)
        status = add(graph, queue, &nodes[i]);
    if (status)
        graph_destroy(graph);
    else
        *out = graph;
    return status;
}

void graph_destroy(void *self)
{
    struct graph *graph = self;
    struct device *device = graph->device;
    for (uint32_t i = 0; i < graph->count; i++)
        note(device, device->cl->release_kernel(graph->kernels[i].kernel),
             "release a kernel");
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

/* Makes the graph's kernels use the queue's workspace. */
static int bind(struct graph *graph, struct queue *queue)
{
    int error = 0;
    if (!graph->workspace || graph->bound == queue->workspace.serial)
        return 0;
    for (uint32_t i = 0; i < graph->count && !error; i++)
        error = launch_bind(queue, &graph->kernels[i]);
    graph->bound = error ? 0 : queue->workspace.serial;
    return error;
}

static int launch(struct graph *graph, struct queue *queue)
{
    int error = bind(graph, queue);
    for (uint32_t i = 0; i < graph->count && !error; i++) {
        error = launch_ready(queue, &graph->kernels[i]);
        if (!error)
            error = launch_flush(queue, 1);
    }
    return error;
}

/* Flushes, so that an application may wait for the graph by polling an event. */
int32_t graph_launch(void *self, void *graph)
{
    struct queue *queue = self;
    struct graph *of = graph;
    int32_t status = check_lost(queue->device);
    if (!status)
        status = launch_reserve(queue, of->workspace);
    if (status)
        return status;
    pthread_mutex_lock(&of->lock);
    int error = launch(of, queue);
    pthread_mutex_unlock(&of->lock);
    if (!error)
        error = queue->device->cl->flush(queue->handle);
    queue->unflushed = 0;
    return answer(queue->device, error, "launch a graph");
}
