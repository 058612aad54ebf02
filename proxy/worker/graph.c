/* SPDX-License-Identifier: MIT */
/* graph.c - graphs. The worker gets the nodes once, and its plugin builds the graph. A launch is
 * one call; the next wait returns its error. If the plugin does not build the graph, the library
 * submits the nodes one by one. */
#include "worker/remote.h"

#include <stdlib.h>

struct remote_graph {
    struct worker *worker;
    uint32_t id;
};

/* Nodes that are not ops need support that a plugin in a worker does not offer. */
static int32_t push_nodes(struct remote_queue *queue, const struct hw_node *nodes,
                          uint32_t count)
{
    int32_t status = HW_OK;
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].op >= HW_OP_COUNT)
            return HW_UNSUPPORTED;
    for (uint32_t i = 0; i < count && !status; i++)
        if (remote_begin_op(queue, WIRE_GRAPH_NODE, nodes[i].op, nodes[i].args, &status))
            remote_push(queue);
    return status;
}

int32_t remote_graph_build(void *of, const struct hw_node *nodes, uint32_t count,
                           void **graph)
{
    struct remote_queue *queue = of;
    struct remote_graph *made = calloc(1, sizeof *made);
    *graph = NULL;
    if (!made)
        return worker_fail(queue->worker, HW_NO_MEMORY, "out of memory for a graph");
    int32_t status = push_nodes(queue, nodes, count);
    if (!status && remote_begin(queue, WIRE_GRAPH_BUILD, 0, &status))
        status = remote_answer(queue, &made->id, sizeof made->id);
    if (status) {
        free(made);
        return status;
    }
    made->worker = queue->worker;
    *graph = made;
    return HW_OK;
}

int32_t remote_graph_launch(void *of, void *launched)
{
    struct remote_queue *queue = of;
    const struct remote_graph *graph = launched;
    int32_t status;
    struct wire_graph *arguments = remote_begin(queue, WIRE_GRAPH_LAUNCH, sizeof *arguments,
                                                &status);
    if (!arguments)
        return status;
    arguments->graph = graph->id;
    remote_push(queue);
    return HW_OK;
}

/* All launches are done: the caller of hw_graph_free() has waited for them. */
void remote_graph_destroy(void *of)
{
    struct remote_graph *graph = of;
    const struct wire_graph arguments = { graph->id };
    worker_tell(graph->worker, &(struct question){ .channel = WIRE_CONTROL,
                                                   .call = WIRE_GRAPH_DESTROY,
                                                   .arguments = &arguments,
                                                   .bytes = sizeof arguments });
    free(graph);
}
