/* SPDX-License-Identifier: MIT */
/* Graphs: the nodes are launched once into a stream that records them. */
#include "cuda.h"

#include <stdlib.h>

struct graph {
    struct device *device;
    void *exec;
};

/* Launches the nodes; `stream` records. The recording ends in any case. */
static int32_t record(struct queue *queue, void *stream, const struct hw_node *nodes,
                      uint32_t count, void **recorded)
{
    const struct driver *cuda = queue->device->cuda;
    int32_t status = HW_OK;
    for (uint32_t i = 0; i < count && !status; i++)
        status = launch_op(queue, nodes[i].op, nodes[i].args, stream);
    const int result = cuda->capture_end(stream, recorded);
    return status ? status : answer(queue->device, result, "record a graph");
}

static int32_t build(struct queue *queue, const struct hw_node *nodes, uint32_t count,
                     void **exec)
{
    enum { NON_BLOCKING = 1, RELAXED = 2 };
    struct device *device = queue->device;
    const struct driver *cuda = device->cuda;
    void *stream = NULL, *recorded = NULL;
    int32_t status = answer(device, cuda->stream_create(&stream, NON_BLOCKING),
                            "create a stream to record a graph");
    if (status)
        return status;
    status = answer(device, cuda->capture_begin(stream, RELAXED),
                    "begin to record a graph");
    if (!status)
        status = record(queue, stream, nodes, count, &recorded);
    if (!status)
        status = answer(device, cuda->graph_instantiate(exec, recorded, 0), "make a graph");
    if (recorded)
        cuda->graph_destroy(recorded);
    cuda->stream_destroy(stream);
    return status;
}

int32_t graph_build(void *self, const struct hw_node *nodes, uint32_t count, void **out)
{
    struct queue *queue = self;
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return hw_fail(queue->device->host, HW_NO_MEMORY, "out of memory");
    graph->device = queue->device;
    int32_t status = enter(queue->device);
    if (!status) {
        status = build(queue, nodes, count, &graph->exec);
        leave(queue->device);
    }
    if (status)
        free(graph);
    else
        *out = graph;
    return status;
}

int32_t graph_launch(void *self, void *graph)
{
    struct queue *queue = self;
    const int32_t status = enter(queue->device);
    if (status)
        return status;
    const int result = queue->device->cuda->graph_launch(((struct graph *)graph)->exec,
                                                         queue->stream);
    leave(queue->device);
    return answer(queue->device, result, "launch a graph");
}

void graph_destroy(void *self)
{
    struct graph *graph = self;
    if (!graph->device->cuda->context_push(graph->device->context)) {
        graph->device->cuda->graph_free(graph->exec);
        leave(graph->device);
    }
    free(graph);
}
