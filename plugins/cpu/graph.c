/* SPDX-License-Identifier: MIT */
/* Graphs: a list of plans, made once, with the rows of the queue that recorded the nodes. */
#include "cpu.h"

#include <stdlib.h>

struct graph {
    uint32_t count;
    struct plan plans[];
};

/* The plans keep the nodes' structs, which are the host's until graph_destroy(), but not the
 * nodes. */
int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count, void **graph)
{
    const struct hw_host *host = ((struct queue *)queue)->device->host;
    struct graph *made = calloc(1, sizeof *made + count * sizeof made->plans[0]);
    if (!made)
        return hw_fail(host, HW_NO_MEMORY, "out of memory for a graph of %u nodes",
                       (unsigned)count);
    made->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const char *why = launch_plan(queue, nodes[i].op, nodes[i].args, &made->plans[i]);
        if (why) {
            free(made);
            return hw_fail(host, HW_UNSUPPORTED, "node %u: %s", (unsigned)i, why);
        }
    }
    *graph = made;
    return HW_OK;
}

int32_t graph_launch(void *queue, void *graph)
{
    struct graph *g = graph;
    for (uint32_t i = 0; i < g->count; i++)
        launch_run(queue, &g->plans[i]);
    return HW_OK;
}

void graph_destroy(void *graph)
{
    free(graph);
}
