/* SPDX-License-Identifier: MIT */
/* Graphs: a list of plans, made once with the rows of the queue that recorded it. */
#include "cpu.h"

#include <stdlib.h>

struct graph {
    struct device *device;
    struct kernel_choice choice; /* what the plans were made with */
    const struct hw_node *nodes; /* the host's */
    uint32_t count;
    struct plan plans[];
};

static int32_t graph_plan(struct graph *graph, struct queue *queue)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hw_node *node = &graph->nodes[i];
        const char *why = launch_plan(queue, node->op, node->args, &graph->plans[i]);
        if (why)
            return hw_fail(graph->device->host, HW_UNSUPPORTED, "node %u: %s", (unsigned)i,
                           why);
    }
    graph->choice = queue->choice;
    return HW_OK;
}

int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count, void **graph)
{
    struct device *dev = ((struct queue *)queue)->device;
    struct graph *made = calloc(1, sizeof *made + count * sizeof made->plans[0]);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY, "out of memory for a graph of %u nodes",
                       (unsigned)count);
    made->device = dev;
    made->nodes = nodes;
    made->count = count;
    const int32_t status = graph_plan(made, queue);
    if (status) {
        free(made);
        return status;
    }
    *graph = made;
    return HW_OK;
}

/* A queue that was told to use other rows than the one that the graph was built on plans
 * it anew. */
int32_t graph_launch(void *queue, void *graph)
{
    struct queue *q = queue;
    struct graph *g = graph;
    const int32_t status = kernel_choice_equal(&g->choice, &q->choice) ? HW_OK
                                                                       : graph_plan(g, q);
    if (status)
        return status;
    for (uint32_t i = 0; i < g->count; i++)
        launch_run(q, &g->plans[i]);
    return HW_OK;
}

void graph_destroy(void *graph)
{
    free(graph);
}
