/* SPDX-License-Identifier: MIT */
/* graph.c - recorded work. A node is a copy of an op's struct, checked when it is recorded.
 * Runs of nodes that the plugin can take as they are go to its graph_build(). Nodes that it
 * does not build are replayed one by one; nodes that need the cold path (staging, views,
 * another device) take it at each launch. A node may also call a function of the application, or
 * say that the contents of a tensor are not needed any more. */
#include "call/graph.h"
#include "route/cost.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "call/args.h"
#include "call/check.h"
#include "call/queue.h"
#include "call/signature.h"
#include "memory/device.h"
#include "route/op_state.h"
#include "route/support.h"

#include <stdlib.h>
#include <string.h>

/* A run of nodes that the plugin can take as they are, or a run of other nodes. */
struct segment {
    uint32_t first, count;
    bool simple; /* the plugin can take them */
    void *built; /* the plugin's graph; NULL: replayed */
};

struct hw_graph {
    struct hw_device *device;
    struct hw_node *nodes; /* their args are from malloc() */
    uint32_t count;
    struct segment *segments;
    uint32_t segment_count, built_count;
    bool has_calls; /* some nodes are HW_NODE_CALL */
    struct hw_graph *next, *prev;
};

/* ---- recording ---- */

void graph_drop(struct hw_graph *graph)
{
    if (!graph)
        return;
    for (uint32_t i = 0; i < graph->segment_count; i++)
        if (graph->segments[i].built)
            graph->device->plugin->table.graph_destroy(graph->segments[i].built);
    for (uint32_t i = 0; i < graph->count; i++)
        free((void *)(uintptr_t)graph->nodes[i].args);
    free(graph->nodes);
    free(graph->segments);
    free(graph);
}

enum hw_status hw_queue_record(struct hw_queue *queue)
{
    enum hw_status status = queue_ready(queue, "hw_queue_record");
    if (status)
        return status;
    if (queue->recording)
        return fail(HW_INVALID, "hw_queue_record: the queue is recording already");
    if (!(queue->recording = calloc(1, sizeof *queue->recording)))
        return fail(HW_NO_MEMORY, "out of memory for a graph");
    queue->recording->device = queue->device;
    queue_set_cold_traits(queue);
    return HW_OK;
}

/* The array with room for one more item, or NULL. Its room is a power of two. */
static void *array_grow(void *array, uint32_t count, size_t each)
{
    return count & (count - 1) ? array : realloc(array, (count ? 2 * count : 1) * each);
}

/* Takes the node's args, which may be NULL: out of memory. */
static enum hw_status graph_take(struct hw_graph *graph, struct hw_node node, bool simple)
{
    struct hw_node *nodes = array_grow(graph->nodes, graph->count, sizeof *nodes);
    graph->nodes = nodes ? nodes : graph->nodes;
    struct segment *last = array_grow(graph->segments, graph->segment_count, sizeof *last);
    graph->segments = last ? last : graph->segments;
    if (!node.args || !nodes || !last) {
        free((void *)(uintptr_t)node.args);
        return fail(HW_NO_MEMORY, "out of memory for a graph node");
    }
    last += graph->segment_count;
    if (!graph->count || last[-1].simple != simple) {
        *last++ = (struct segment){ .first = graph->count, .simple = simple };
        graph->segment_count++;
    }
    last[-1].count++;
    nodes[graph->count++] = node;
    return HW_OK;
}

/* Whether graph_build() may get the op. With an older plugin, each launch must check that the
 * plugin knows all fields that are set. With HW_SHADOW, each launch decides about comparing. */
static bool op_is_simple(struct hw_queue *queue, uint32_t op, const void *args,
                         uint32_t traits)
{
    const struct plugin *plugin = queue->device->plugin;
    return !queue->shadow && !(traits & queue->cold_traits[op] & ~(uint32_t)TRAIT_ALWAYS) &&
           op < plugin->table.op_count && plugin->table.op_sizes[op] >= op_rows[op].size &&
           plugin_supports(queue->device, op, args) == HW_OK;
}

enum hw_status graph_add(struct hw_queue *queue, uint32_t op, const void *args,
                         uint32_t traits)
{
    if (traits & TRAIT_EMPTY)
        return HW_OK;
    const size_t bytes = plugin_args_size(queue->device->plugin, op);
    void *copy = calloc(1, bytes);
    if (copy)
        memcpy(copy, args, op_rows[op].size);
    return graph_take(queue->recording, (struct hw_node){ op, (uint32_t)bytes, copy },
                      copy && op_is_simple(queue, op, copy, traits));
}

/* ---- calls of the application ---- */

static enum hw_status node_call(struct hw_queue *queue, const struct hw_node_call *call)
{
    void *handle = NULL;
    enum hw_status status = queue_handle(queue, "hw_queue_call", call->kind, &handle);
    if (status)
        return status;
    cost_route_other_work(queue);
    status = (enum hw_status)call->fn(call->user, handle);
    return status ? fail(status, "hw_queue_call on %s: the application's function failed",
                         queue->device->name)
                  : HW_OK;
}

enum hw_status hw_queue_call(struct hw_queue *queue, const char *kind,
                             int32_t (*fn)(void *user, void *handle), void *user)
{
    enum hw_status status = queue_ready(queue, "hw_queue_call");
    if (status)
        return status;
    REQUIRE(kind);
    REQUIRE(fn);
    if (!queue->recording) {
        status = node_call(queue, &(struct hw_node_call){ kind, fn, user });
        return status ? status : settle_synchronous(queue);
    }
    void *handle; /* not used: asking for it refuses a kind that the device does not have */
    if ((status = queue_handle(queue, "hw_queue_call", kind, &handle)))
        return status;
    const size_t length = strlen(kind) + 1;
    struct hw_node_call *call = malloc(sizeof *call + length);
    if (call)
        *call = (struct hw_node_call){ memcpy(call + 1, kind, length), fn, user };
    status = graph_take(queue->recording,
                        (struct hw_node){ HW_NODE_CALL, sizeof *call, call }, true);
    queue->recording->has_calls |= !status;
    return status;
}

/* ---- discarded contents ---- */

enum hw_status hw_tensor_discard(struct hw_queue *queue, const struct hw_tensor *tensor)
{
    enum hw_status status = queue_ready(queue, "hw_tensor_discard");
    if (status || (status = check_tensor(queue, "hw_tensor_discard", 0, tensor, true)))
        return status;
    if (!queue->recording || !queue->device->plugin->table.discards)
        return HW_OK;
    struct hw_tensor *copy = malloc(sizeof *copy);
    if (copy)
        *copy = *tensor;
    struct hw_graph *graph = queue->recording; /* the node joins the segment before it */
    return graph_take(graph, (struct hw_node){ HW_NODE_DISCARD, sizeof *copy, copy },
                      !graph->count || graph->segments[graph->segment_count - 1].simple);
}

/* ---- building ---- */

static enum hw_status segment_build(struct hw_queue *queue, struct hw_graph *graph,
                                    struct segment *segment)
{
    struct hw_device *device = graph->device;
    plugin_message_clear();
    int32_t answer = device->plugin->table.graph_build(
        queue->impl, graph->nodes + segment->first, segment->count, &segment->built);
    if (answer)
        segment->built = NULL;
    graph->built_count += segment->built != NULL;
    if (answer && answer != HW_UNSUPPORTED)
        return fail_in(device_result(device, answer),
                       "build a graph on %s: ", device->name);
    if (answer)
        plugin_message_clear(); /* the nodes are replayed */
    return HW_OK;
}

static enum hw_status graph_build(struct hw_queue *queue, struct hw_graph *graph)
{
    enum hw_status status = HW_OK;
    for (uint32_t i = 0; i < graph->segment_count && !status; i++)
        if (graph->segments[i].simple)
            status = segment_build(queue, graph, &graph->segments[i]);
    return status;
}

enum hw_status hw_queue_end(struct hw_queue *queue, struct hw_graph **graph)
{
    REQUIRE(graph);
    *graph = NULL;
    REQUIRE(queue);
    enum hw_status status = guard(queue->device->context->generation);
    if (status)
        return status;
    struct hw_graph *made = queue->recording;
    if (!made)
        return fail(
            HW_INVALID,
            "hw_queue_end: the queue is not recording; call hw_queue_record() first");
    queue->recording = NULL;
    queue_set_cold_traits(queue);
    if ((status = queue_ready(queue, "hw_queue_end")) ||
        (status = graph_build(queue, made))) {
        graph_drop(made);
        return status;
    }
    struct hw_context *context = made->device->context;
    pthread_mutex_lock(&context->lock);
    list_add(&context->graphs, made);
    pthread_mutex_unlock(&context->lock);
    *graph = made;
    return HW_OK;
}

/* ---- launching ---- */

static bool is_op(const struct hw_node *node)
{
    return node->op < HW_OP_COUNT;
}

static enum hw_status node_replay(struct hw_queue *queue, const struct hw_node *node)
{
    if (node->op == HW_NODE_CALL)
        return node_call(queue, node->args);
    return is_op(node) ? hw_submit(queue, node->op, node->args, op_rows[node->op].size)
                       : HW_OK;
}

/* Whether the built segment has an op that has been rejected since. */
static bool has_rejected_op(const struct hw_graph *graph, const struct segment *segment)
{
    const struct hw_node *node = graph->nodes + segment->first,
                         *end = node + segment->count;
    while (node < end &&
           !(is_op(node) && check_rejected(graph->device, node->op, node->args)))
        node++;
    return node < end;
}

static enum hw_status segment_launch(struct hw_graph *graph, struct segment *segment,
                                     struct hw_queue *queue)
{
    enum hw_status status = HW_OK;
    const struct hw_node *nodes = graph->nodes + segment->first;
    if (!segment->built ||
        (has_rejected(graph->device) && has_rejected_op(graph, segment))) {
        for (uint32_t i = 0; i < segment->count && !status; i++)
            status = node_replay(queue, &nodes[i]);
        return status;
    }
    plugin_message_clear();
    int32_t answer = graph->device->plugin->table.graph_launch(queue->impl, segment->built);
    if (answer)
        return fail_in(device_result(graph->device, answer),
                       "launch a graph on %s: ", graph->device->name);
    for (uint32_t i = 0; i < segment->count; i++)
        if (is_op(&nodes[i]))
            count(&queue->calls[nodes[i].op].calls, 1);
    return HW_OK;
}

enum hw_status hw_graph_launch(struct hw_graph *graph, struct hw_queue *queue)
{
    enum hw_status status = queue_ready(queue, "hw_graph_launch");
    if (status)
        return status;
    REQUIRE(graph);
    if (graph->device != queue->device)
        return fail(HW_INVALID, "hw_graph_launch: the graph belongs to %s, the queue to %s",
                    graph->device->name, queue->device->name);
    if (queue->recording)
        return fail(
            HW_INVALID,
            "hw_graph_launch: the queue is recording; a graph cannot contain graphs");
    if (graph->has_calls && (status = queue_write_in_order(queue)))
        return status;
    queue->in_graph = true;
    for (uint32_t i = 0; i < graph->segment_count && !status; i++)
        status = segment_launch(graph, &graph->segments[i], queue);
    queue->in_graph = false;
    if (status)
        queue_drain(queue); /* earlier nodes may still use the caller's host memory */
    return status ? status : settle_synchronous(queue);
}

void hw_graph_free(struct hw_graph *graph)
{
    if (!graph || forked(graph->device->context->generation))
        return;
    struct hw_context *context = graph->device->context;
    pthread_mutex_lock(&context->lock);
    list_remove(&context->graphs, graph);
    pthread_mutex_unlock(&context->lock);
    graph_drop(graph);
}

enum hw_status hw_graph_info(struct hw_graph *graph, struct hw_graph_info *info)
{
    REQUIRE(graph);
    REQUIRE(info);
    enum hw_status status = check_size(__func__, "info", info, 2 * sizeof(uint32_t));
    if (status || (status = guard(graph->device->context->generation)))
        return status;
    const struct hw_graph_info now = {
        .nodes = graph->count,
        .segments = graph->segment_count,
        .built = graph->built_count,
    };
    return answer_struct(info, &now, sizeof now);
}
