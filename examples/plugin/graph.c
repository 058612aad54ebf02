/* SPDX-License-Identifier: MIT */
/* graph.c - the host's nodes, each with the row that computes it; a launch is one job. */
#include "discrete.h"

#include <stdlib.h>

struct graph {
    uint32_t count;
    struct {
        const void *args; /* the host's, which keeps them, but not the nodes */
        uint32_t bytes;
        struct plan plan;
    } steps[];
};

int32_t graph_build(void *self, const struct hw_node *nodes, uint32_t count, void **out)
{
    struct queue *queue = self;
    const struct hw_host *host = queue->device->instance->host;
    struct graph *graph = malloc(sizeof *graph + count * sizeof graph->steps[0]);
    if (!graph)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    graph->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const char *why = kernel_plan(&queue->choice, nodes[i].op, nodes[i].args,
                                      &graph->steps[i].plan);
        graph->steps[i].args = nodes[i].args;
        graph->steps[i].bytes = nodes[i].bytes;
        if (why) {
            free(graph);
            return hw_fail(host, HW_UNSUPPORTED, "node %u: %s", (unsigned)i, why);
        }
    }
    *out = graph;
    return HW_OK;
}

static int32_t run_graph(struct queue *queue, struct job *job)
{
    const struct graph *graph = job->u.graph;
    for (uint32_t i = 0; i < graph->count; i++) {
        struct job one;
        memcpy(&one.u, graph->steps[i].args, graph->steps[i].bytes);
        graph->steps[i].plan.run(queue, &one);
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
