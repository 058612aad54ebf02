/* SPDX-License-Identifier: MIT */
/* Graphs: the nodes are launched once into a stream that records them. */
#include "launch.h"

#include "common/lowering.h"
#include "common/operands.h"

#include "kernels/heads.h"

#include <stdlib.h>

/* The driver never runs two launches of a graph at the same time, so they can share the
 * workspace. */
struct graph {
    struct device *device;
    void *exec;
    struct workspace workspace;
};

/* Reserves the workspace in advance: recorded work cannot allocate. */
static int32_t reserve(struct queue *queue, const struct hw_node *nodes, uint32_t count,
                       struct workspace *workspace)
{
    struct plan plan;
    uint64_t most = 0;
    int32_t status = HW_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        if (nodes[i].op == HW_NODE_CALL)
            continue;
        status = launch_plan(queue, nodes[i].op, nodes[i].args, &plan);
        if (!status && plan.workspace > most)
            most = plan.workspace;
    }
    return status ? status : launch_reserve(queue->device, NULL, workspace, most);
}

/* The application submits its own work, which is recorded, too. */
static int32_t call_application(struct device *device, const struct hw_node_call *call,
                                void *stream)
{
    const int32_t status = call->fn(call->user, stream);
    return status ? hw_fail(device->host, status, "the application's call failed") : HW_OK;
}

static int32_t record_node(const struct launcher *at, struct queue *queue,
                           const struct hw_node *node)
{
    struct plan plan;
    if (node->op == HW_NODE_CALL)
        return call_application(at->device, node->args, at->stream);
    const int32_t status = launch_plan(queue, node->op, node->args, &plan);
    return status ? status : launch_planned(at, &plan, node->args);
}

/* ---- what nodes write ---- */

static bool node_writes(const struct hw_node *node, struct range range)
{
    const struct hw_tensor *t = node->args;
    if (node->op == HW_NODE_CALL) /* its writes are unknown */
        return true;
    const struct op_layout *layout = &op_layouts[node->op];
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->operand[i].role >= HW_ROLE_OUT &&
            !are_apart(launch_range(&t[i]), range))
            return true;
    return false;
}

bool graph_writes(const struct launcher *at, const struct hw_node *nodes, uint32_t own,
                  struct range range)
{
    for (const struct hw_node *node = at->nodes; node < at->nodes + at->node_count; node++)
        if ((node < nodes || node >= nodes + own) && node_writes(node, range))
            return true;
    return false;
}

/* ---- recording ---- */

/* Launches the nodes; `stream` records. The recording ends even on failure. */
static int32_t record(struct queue *queue, void *stream, uint64_t workspace,
                      const struct hw_node *nodes, uint32_t count, void **recorded)
{
    struct heads_job rotated = { .x = 0 };
    struct launcher at = { .device = queue->device,
                           .stream = stream,
                           .workspace = workspace + WORKSPACE_HEAD,
                           .nodes = nodes,
                           .node_count = count,
                           .rotated = &rotated };
    int32_t status = HW_OK;
    for (uint32_t i = 0, taken; i < count && !status; i += taken) {
        status = gemv_launch_nodes(&at, queue, &nodes[i], count - i, &taken);
        if (!status && taken == 0)
            status = heads_launch_nodes(&at, queue, &nodes[i], count - i, &taken);
        if (!status && taken == 0) {
            status = record_node(&at, queue, &nodes[i]);
            taken = 1;
        }
        const uint32_t last = nodes[i + taken - 1].op;
        at.in_order = last == HW_OP_COPY || last == HW_NODE_CALL;
    }
    const int result = queue->device->cuda->capture_end(stream, recorded);
    return status ? status : answer(queue->device, result, "record a graph");
}

static int32_t build(struct queue *queue, const struct hw_node *nodes, uint32_t count,
                     struct graph *graph)
{
    struct device *device = queue->device;
    const struct driver *cuda = device->cuda;
    void *stream = NULL, *recorded = NULL;
    int32_t status = reserve(queue, nodes, count, &graph->workspace);
    if (status)
        return status;
    status = answer(device, cuda->stream_create(&stream, STREAM_NON_BLOCKING),
                    "create a stream to record a graph");
    if (status)
        return status;
    status = answer(device, cuda->capture_begin(stream, CAPTURE_RELAXED),
                    "begin to record a graph");
    if (!status)
        status = record(queue, stream, graph->workspace.address, nodes, count, &recorded);
    if (!status)
        status = answer(device, cuda->graph_instantiate(&graph->exec, recorded, 0),
                        "make a graph");
    if (recorded)
        note(device, cuda->graph_destroy(recorded), "destroy a recording");
    note(device, cuda->stream_destroy(stream), "destroy a stream");
    return status;
}

void graph_destroy(void *self)
{
    struct graph *graph = self;
    struct device *device = graph->device;
    if (enter_to_close(device, "free a graph")) {
        if (graph->exec)
            note(device, device->cuda->graph_free(graph->exec), "free a graph");
        launch_release(device, &graph->workspace);
        leave(device);
    }
    free(graph);
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
        status = build(queue, nodes, count, graph);
        leave(queue->device);
    }
    if (status)
        graph_destroy(graph);
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
