/* SPDX-License-Identifier: MIT */
/* graph.c - the host's nodes, which it keeps; the whole is one job. */
#include "discrete.h"

#include <stdlib.h>

struct graph {
    uint32_t count;
    struct hw_node nodes[];
};

int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count, void **out)
{
    struct graph *graph = malloc(sizeof *graph + count * sizeof *nodes);
    if (!graph)
        return hw_fail(((struct queue *)queue)->device->instance->host, HW_NO_MEMORY,
                       "out of memory");
    graph->count = count;
    memcpy(graph->nodes, nodes, count * sizeof *nodes);
    *out = graph;
    return HW_OK;
}

static int32_t run_graph(struct queue *queue, struct job *job)
{
    const struct graph *graph = job->u.graph;
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hw_node *node = &graph->nodes[i];
        struct job one;
        memcpy(&one.u, node->args, node->bytes);
        ops_kernel(node->op)(queue, &one); /* ops_supports() has said yes to no other */
    }
    return HW_OK;
}

int32_t graph_launch(void *self, void *graph)
{
    struct queue *queue = self;
    struct job *job = queue_job(queue, run_graph);
    if (!job)
        return queue_no_job(queue);
    job->u.graph = graph;
    return queue_submit(queue, job);
}

void graph_destroy(void *graph)
{
    free(graph);
}
