/* SPDX-License-Identifier: MIT */
/* graph.c - graphs, with copies of their nodes' data: the plugin may read these until it destroys
 * the graph. */
#include "server.h"

#include "base/message.h"
#include "call/ops.h"

#include <stdlib.h>
#include <string.h>

/* A graph of the library. */
struct chain {
    struct hw_node *nodes;
    uint32_t count, room;
    bool no_memory, unknown; /* faults of a node */
    void *built;             /* the plugin's */
};

static struct chain none; /* stands for one for which there was no memory */

/* ---- nodes ---- */

static bool make_room(struct chain *graph)
{
    if (graph->count < graph->room)
        return true;
    const uint32_t room = graph->room ? 2 * graph->room : 64;
    struct hw_node *nodes = realloc(graph->nodes, room * sizeof *nodes);
    if (!nodes)
        return false;
    graph->nodes = nodes;
    graph->room = room;
    return true;
}

/* Replaces the numbers of buffers in the tensors by buffers. */
static bool put_buffers(struct server *server, const struct wire_op *node, void *args,
                        struct hw_buffer *buffers)
{
    const struct wire_view *views = (const void *)((const char *)(node + 1) + node->bytes);
    for (uint32_t i = 0; i < op_rows[node->op].operand_count; i++) {
        struct hw_tensor *tensor = operand_in(args, &op_rows[node->op].operands[i]);
        const uintptr_t number = (uintptr_t)tensor->buffer;
        if (!number)
            continue;
        if (number > node->views ||
            !server_view(server, &views[number - 1], &buffers[number - 1]))
            return false;
        tensor->buffer = &buffers[number - 1];
    }
    return true;
}

/* One block contains the op's struct, followed by its buffers. */
static void add(struct server *server, struct chain *graph, const struct wire_op *node)
{
    const size_t bytes = (node->bytes + (size_t)7) / 8 * 8;
    char *args = malloc(bytes + node->views * sizeof(struct hw_buffer));
    if (!args || !make_room(graph)) {
        free(args);
        graph->no_memory = true;
        return;
    }
    memcpy(args, node + 1, node->bytes);
    graph->nodes[graph->count++] =
        (struct hw_node){ .op = node->op, .bytes = node->bytes, .args = args };
    graph->unknown |= !put_buffers(server, node, args, (void *)(args + bytes));
}

void chain_add(struct server *server, struct chain **graph, const struct wire_op *node)
{
    if (!*graph && !(*graph = calloc(1, sizeof **graph)))
        *graph = &none; /* so that a later node does not begin another graph */
    if (*graph == &none)
        return;
    if (node->op < HW_OP_COUNT && node->views <= MAX_OPERANDS)
        add(server, *graph, node);
    else
        (*graph)->unknown = true;
}

/* ---- graphs ---- */

void chain_free(struct server *server, struct chain *graph)
{
    if (!graph || graph == &none)
        return;
    if (graph->built)
        server->table->graph_destroy(graph->built);
    for (uint32_t i = 0; i < graph->count; i++)
        free((void *)(uintptr_t)graph->nodes[i].args);
    free(graph->nodes);
    free(graph);
}

static int32_t build(struct server *server, void *queue, struct chain *graph,
                     uint32_t *number)
{
    if (!graph || graph == &none || graph->no_memory)
        return plugin_message_set(HW_NO_MEMORY, "out of memory for a graph");
    if (graph->unknown)
        return server_fail("node of a graph");
    const int32_t status = server->table->graph_build(queue, graph->nodes, graph->count,
                                                      &graph->built);
    if (status) {
        graph->built = NULL;
        return status;
    }
    *number = objects_add(&server->graphs, graph);
    return *number ? HW_OK : plugin_message_set(HW_NO_MEMORY, "out of memory for a graph");
}

int32_t chain_build(struct server *server, void *queue, struct chain *graph,
                    uint32_t *number)
{
    const int32_t status = build(server, queue, graph, number);
    if (status)
        chain_free(server, graph);
    return status;
}

int32_t chain_launch(struct server *server, void *queue, uint32_t number)
{
    const struct chain *graph = objects_find(&server->graphs, number);
    return graph ? server->table->graph_launch(queue, graph->built) : server_fail("graph");
}
