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
#include "route/fallback.h"
#include "route/op_state.h"
#include "route/support.h"

#include <stdlib.h>
#include <string.h>

struct node {
    uint32_t op; /* enum hw_op, HW_NODE_CALL or HW_NODE_DISCARD */
    uint32_t traits;
    bool simple; /* the plugin can take it as it is */
    void *args;  /* of args_size() bytes, or a struct hw_node_call and its kind */
};

/* Nodes first .. first + count - 1. */
struct segment {
    uint32_t first, count;
    void *built; /* the plugin's graph; NULL: replayed */
};

struct hw_graph {
    struct hw_device *device;
    struct node *nodes;
    uint32_t count, room;
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
        free(graph->nodes[i].args);
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

static bool make_room(struct hw_graph *graph)
{
    if (graph->count < graph->room)
        return true;
    uint32_t room = graph->room ? 2 * graph->room : 64;
    struct node *nodes = realloc(graph->nodes, room * sizeof *nodes);
    if (!nodes)
        return false;
    graph->nodes = nodes;
    graph->room = room;
    return true;
}

/* Takes `args`, which may be NULL: out of memory. */
static enum hw_status add(struct hw_graph *graph, uint32_t op, void *args, uint32_t traits)
{
    if (!args || !make_room(graph)) {
        free(args);
        return fail(HW_NO_MEMORY, "out of memory for a graph node");
    }
    graph->nodes[graph->count++] =
        (struct node){ .op = op, .traits = traits, .args = args };
    return HW_OK;
}

enum hw_status graph_add(struct hw_queue *queue, uint32_t op, const void *args,
                         uint32_t traits)
{
    if (traits & TRAIT_EMPTY)
        return HW_OK;
    void *copy = calloc(1, plugin_args_size(queue->device->plugin, op));
    if (copy)
        memcpy(copy, args, op_rows[op].size);
    return add(queue->recording, op, copy, traits);
}

/* ---- calls of the application ---- */

static enum hw_status call_now(struct hw_queue *queue, const struct hw_node_call *call)
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
        status = call_now(queue, &(struct hw_node_call){ kind, fn, user });
        return status ? status : settle_synchronous(queue);
    }
    void *handle; /* not used: asking for it refuses a kind that the device does not have */
    if ((status = queue_handle(queue, "hw_queue_call", kind, &handle)))
        return status;
    const size_t length = strlen(kind) + 1;
    struct hw_node_call *call = malloc(sizeof *call + length);
    if (call)
        *call = (struct hw_node_call){ memcpy(call + 1, kind, length), fn, user };
    status = add(queue->recording, HW_NODE_CALL, call, 0);
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
    return add(queue->recording, HW_NODE_DISCARD, copy, 0);
}

/* ---- building ---- */

static bool is_op(const struct node *node)
{
    return node->op < HW_OP_COUNT;
}

static size_t args_size(const struct plugin *plugin, uint32_t op)
{
    switch (op) {
    case HW_NODE_CALL:
        return sizeof(struct hw_node_call);
    case HW_NODE_DISCARD:
        return sizeof(struct hw_tensor);
    default:
        return plugin_args_size(plugin, op);
    }
}

/* Whether graph_build() may get the node. With an older plugin, each launch must check that the
 * plugin knows all fields that are set. With HW_SHADOW, each launch decides about comparing. */
static bool simple(struct hw_queue *queue, const struct node *node)
{
    const struct plugin *plugin = queue->device->plugin;
    const uint32_t op = node->op;
    if (!is_op(node))
        return true;
    return !queue->shadow &&
           !(node->traits & queue->cold_traits[op] & ~(uint32_t)TRAIT_ALWAYS) &&
           op < plugin->table.op_count && plugin->table.op_sizes[op] >= op_rows[op].size &&
           plugin_supports(queue->device, op, node->args) == HW_OK;
}

/* Divides the nodes into runs of simple nodes and runs of other nodes. */
static enum hw_status divide(struct hw_graph *graph)
{
    graph->segments = calloc(graph->count ? graph->count : 1, sizeof *graph->segments);
    if (!graph->segments)
        return fail(HW_NO_MEMORY, "out of memory for a graph");
    for (uint32_t i = 0; i < graph->count; i++) {
        if (i == 0 || graph->nodes[i].simple != graph->nodes[i - 1].simple)
            graph->segments[graph->segment_count++].first = i;
        graph->segments[graph->segment_count - 1].count++;
    }
    return HW_OK;
}

static enum hw_status build(struct hw_queue *queue, struct hw_graph *graph,
                            struct segment *segment)
{
    struct hw_device *device = graph->device;
    struct hw_node *nodes = calloc(segment->count, sizeof *nodes);
    if (!nodes)
        return fail(HW_NO_MEMORY, "out of memory for a graph");
    for (uint32_t i = 0; i < segment->count; i++) {
        const struct node *node = &graph->nodes[segment->first + i];
        const size_t bytes = args_size(device->plugin, node->op);
        nodes[i] = (struct hw_node){ node->op, (uint32_t)bytes, node->args };
    }
    plugin_message_clear();
    int32_t answer = device->plugin->table.graph_build(queue->impl, nodes, segment->count,
                                                       &segment->built);
    free(nodes);
    if (answer) {
        segment->built = NULL;
        if (answer == HW_UNSUPPORTED) { /* the nodes are replayed */
            plugin_message_clear();
            return HW_OK;
        }
        return fail_in(device_result(device, answer),
                       "build a graph on %s: ", device->name);
    }
    graph->built_count += segment->built != NULL;
    return HW_OK;
}

static enum hw_status build_all(struct hw_queue *queue, struct hw_graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const bool follows = i > 0 && graph->nodes[i].op == HW_NODE_DISCARD;
        graph->nodes[i].simple = follows ? graph->nodes[i - 1].simple
                                         : simple(queue, &graph->nodes[i]);
    }
    enum hw_status status = divide(graph);
    for (uint32_t i = 0; i < graph->segment_count && !status; i++)
        if (graph->nodes[graph->segments[i].first].simple)
            status = build(queue, graph, &graph->segments[i]);
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
        (status = build_all(queue, made))) {
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

static enum hw_status replay(struct hw_queue *queue, const struct node *node)
{
    if (node->op == HW_NODE_CALL)
        return call_now(queue, node->args);
    if (node->op == HW_NODE_DISCARD)
        return HW_OK;
    if (!node->simple || check_rejected(queue->device, node->op, node->args))
        return hw_submit(queue, node->op, node->args, op_rows[node->op].size);
    int32_t answer = op_rows[node->op].call(queue, node->args);
    if (answer)
        return submit_failed(queue, node->op, node->args, answer);
    count(&queue->calls[node->op].calls, 1);
    return HW_OK;
}

/* Whether the built segment has an op that has been rejected since. */
static bool has_rejected_op(const struct hw_graph *graph, const struct segment *segment)
{
    const struct node *nodes = graph->nodes + segment->first;
    bool any = false;
    for (uint32_t i = 0; i < segment->count && !any; i++)
        any = is_op(&nodes[i]) &&
              check_rejected(graph->device, nodes[i].op, nodes[i].args) != HW_OK;
    return any;
}

static enum hw_status launch(struct hw_graph *graph, struct segment *segment,
                             struct hw_queue *queue)
{
    enum hw_status status = HW_OK;
    const struct node *nodes = graph->nodes + segment->first;
    if (!segment->built ||
        (has_rejected(graph->device) && has_rejected_op(graph, segment))) {
        for (uint32_t i = 0; i < segment->count && !status; i++)
            status = replay(queue, &nodes[i]);
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
        status = launch(graph, &graph->segments[i], queue);
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
        .size = info->size < sizeof now ? info->size : (uint32_t)sizeof now,
        .nodes = graph->count,
        .segments = graph->segment_count,
        .built = graph->built_count,
    };
    memcpy(info, &now, now.size);
    return HW_OK;
}
