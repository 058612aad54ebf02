/* SPDX-License-Identifier: MIT */
/* graph.c - recorded work. Ops are checked once, when they are recorded; their structs are plain
 * bytes and are kept as such. Runs of simple nodes are one segment, which the plugin may build;
 * a node that needs the cold path is a segment of its own and takes it at each launch. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

struct node {
    uint32_t op, cold;
    uint64_t offset; /* of its struct in `args` */
};

struct recording {
    struct node *nodes;
    uint32_t count, room;
    char *args;
    uint64_t bytes, args_room;
    enum hw_status failed; /* an op did not fit in memory */
};

struct segment {
    uint32_t first, count;
    void *built; /* the plugin's graph; NULL: replayed */
};

struct hw_graph {
    struct hw_device *device;
    struct recording *recording;
    struct hw_node *nodes;
    struct segment *segments;
    uint32_t segment_count;
    struct hw_graph *next;
};

/* ---- recording ---- */

#define ALIGN 16u

static bool make_room(struct recording *r, uint64_t bytes)
{
    if (r->count == r->room) {
        const uint32_t room = r->room ? 2 * r->room : 64;
        struct node *nodes = realloc(r->nodes, room * sizeof *nodes);
        if (!nodes)
            return false;
        r->nodes = nodes;
        r->room = room;
    }
    while (r->bytes + bytes > r->args_room) {
        const uint64_t room = r->args_room ? 2 * r->args_room : UINT64_C(1) << 15;
        char *args = realloc(r->args, room);
        if (!args)
            return false;
        r->args = args;
        r->args_room = room;
    }
    return true;
}

enum hw_status record_op(struct hw_queue *queue, uint32_t op, const void *args,
                         uint32_t cold)
{
    struct recording *r = queue->recording;
    const uint32_t size = op_descs[op].size;
    const uint64_t padded = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!make_room(r, padded))
        return r->failed = fail(HW_NO_MEMORY, "out of memory for a recording of %u ops",
                                (unsigned)r->count);
    memcpy(r->args + r->bytes, args, size);
    r->nodes[r->count++] = (struct node){ .op = op, .cold = cold, .offset = r->bytes };
    r->bytes += padded;
    return HW_OK;
}

void recording_free(struct recording *r)
{
    if (!r)
        return;
    free(r->nodes);
    free(r->args);
    free(r);
}

enum hw_status hw_queue_record(struct hw_queue *queue)
{
    if (!queue)
        return fail(HW_INVALID, "hw_queue_record: queue may not be NULL");
    enum hw_status status = guard(queue->device->context);
    if (status)
        return status;
    if (queue->recording)
        return fail(HW_INVALID, "hw_queue_record: the queue is recording already");
    queue->recording = calloc(1, sizeof *queue->recording);
    if (!queue->recording)
        return fail(HW_NO_MEMORY, "out of memory for a recording");
    queue->cold |= COLD_QUEUE;
    return HW_OK;
}

/* ---- building ---- */

/* Runs of nodes without a cold path; each of the others is alone. */
static void cut_segments(struct hw_graph *graph)
{
    const struct recording *r = graph->recording;
    for (uint32_t i = 0; i < r->count; i++) {
        struct segment *last = graph->segment_count
                                   ? &graph->segments[graph->segment_count - 1]
                                   : NULL;
        if (last && !r->nodes[i].cold && !r->nodes[i - 1].cold)
            last->count++;
        else
            graph->segments[graph->segment_count++] = (struct segment){ .first = i,
                                                                        .count = 1 };
    }
}

static void build_segments(struct hw_graph *graph)
{
    const struct hw_plugin *table = &graph->device->plugin->table;
    for (uint32_t i = 0; i < graph->segment_count; i++) {
        struct segment *s = &graph->segments[i];
        if (graph->recording->nodes[s->first].cold)
            continue;
        /* What a plugin does not build is replayed, and hw_graph_info() says so. */
        if (table->graph_build(graph->device->impl, graph->nodes + s->first, s->count,
                               &s->built)) {
            s->built = NULL;
            log_line(graph->device->context, HW_LOG_DEBUG,
                     "%s: a segment of %u ops is replayed one by one: %s",
                     graph->device->name, (unsigned)s->count, hw_message());
        }
    }
}

static enum hw_status graph_create(struct hw_queue *queue, struct recording *r,
                                   struct hw_graph **out)
{
    struct hw_graph *graph = calloc(1, sizeof *graph);
    const uint32_t count = r->count ? r->count : 1;
    if (graph) {
        graph->nodes = calloc(count, sizeof *graph->nodes);
        graph->segments = calloc(count, sizeof *graph->segments);
    }
    if (!graph || !graph->nodes || !graph->segments) {
        if (graph) {
            free(graph->nodes);
            free(graph->segments);
        }
        free(graph);
        return fail(HW_NO_MEMORY, "out of memory for a graph of %u ops",
                    (unsigned)r->count);
    }
    graph->device = queue->device;
    graph->recording = r;
    for (uint32_t i = 0; i < r->count; i++)
        graph->nodes[i] = (struct hw_node){ .op = r->nodes[i].op,
                                            .bytes = op_descs[r->nodes[i].op].size,
                                            .args = r->args + r->nodes[i].offset };
    cut_segments(graph);
    build_segments(graph);
    struct hw_context *context = graph->device->context;
    pthread_mutex_lock(&context->lock);
    graph->next = context->graphs;
    context->graphs = graph;
    pthread_mutex_unlock(&context->lock);
    *out = graph;
    return HW_OK;
}

enum hw_status hw_queue_end(struct hw_queue *queue, struct hw_graph **out)
{
    if (out)
        *out = NULL;
    if (!queue || !out)
        return fail(HW_INVALID, "hw_queue_end: queue and graph may not be NULL");
    enum hw_status status = guard(queue->device->context);
    if (status)
        return status;
    struct recording *r = queue->recording;
    if (!r)
        return fail(HW_INVALID, "hw_queue_end: the queue is not recording");
    queue->recording = NULL;
    queue->cold = queue->old_plugin || atomic_load(&queue->device->lost) ? COLD_QUEUE : 0;
    if ((status = r->failed) == HW_OK)
        status = graph_create(queue, r, out);
    else
        fail(status, "hw_queue_end: memory ran out while recording");
    if (status)
        recording_free(r);
    return status;
}

/* ---- launching ---- */

static enum hw_status launch_segment(struct hw_graph *graph, struct hw_queue *queue,
                                     const struct segment *s)
{
    enum hw_status status = HW_OK;
    if (s->built) {
        int32_t answer = graph->device->plugin->table.graph_launch(queue->impl, s->built);
        if (answer)
            return fail_in(queue_result(queue, answer), "%s: launch a graph: ",
                           graph->device->name);
        for (uint32_t i = s->first; i < s->first + s->count; i++)
            queue->counts[graph->nodes[i].op].calls++;
        return HW_OK;
    }
    for (uint32_t i = s->first; i < s->first + s->count && !status; i++) {
        const struct node *node = &graph->recording->nodes[i];
        const uint32_t cold = node->cold | queue->cold;
        status = cold ? route(queue, node->op, graph->nodes[i].args, cold)
                      : run_checked(queue, node->op, graph->nodes[i].args);
    }
    return status;
}

enum hw_status hw_graph_launch(struct hw_graph *graph, struct hw_queue *queue)
{
    if (!graph || !queue)
        return fail(HW_INVALID, "hw_graph_launch: graph and queue may not be NULL");
    enum hw_status status = guard(graph->device->context);
    if (status)
        return status;
    if (queue->device != graph->device)
        return fail(HW_INVALID, "hw_graph_launch: the graph is one of %s, the queue of %s",
                    graph->device->name, queue->device->name);
    if (queue->recording)
        return fail(HW_INVALID, "hw_graph_launch: the queue is recording");
    if (atomic_load(&queue->device->lost))
        return fail(HW_LOST, "%s is lost: close its queues and buffers",
                    queue->device->name);
    for (uint32_t i = 0; i < graph->segment_count && !status; i++)
        status = launch_segment(graph, queue, &graph->segments[i]);
    return status;
}

/* ---- the end ---- */

void hw_graph_free(struct hw_graph *graph)
{
    if (!graph || forked(graph->device->context))
        return;
    struct hw_context *context = graph->device->context;
    pthread_mutex_lock(&context->lock);
    for (struct hw_graph **link = &context->graphs; *link; link = &(*link)->next)
        if (*link == graph) {
            *link = graph->next;
            break;
        }
    pthread_mutex_unlock(&context->lock);
    for (uint32_t i = 0; i < graph->segment_count; i++)
        if (graph->segments[i].built)
            graph->device->plugin->table.graph_destroy(graph->segments[i].built);
    recording_free(graph->recording);
    free(graph->segments);
    free(graph->nodes);
    free(graph);
}

enum hw_status hw_graph_info(struct hw_graph *graph, struct hw_graph_info *info)
{
    if (!graph || !info || info->size < 2 * sizeof(uint32_t))
        return fail(HW_INVALID, "hw_graph_info: graph and info may not be NULL, and "
                                "info->size is sizeof *info");
    struct hw_graph_info now = { .size = info->size < sizeof *info ? info->size
                                                                   : (uint32_t)sizeof *info,
                                 .nodes = graph->recording->count,
                                 .segments = graph->segment_count };
    for (uint32_t i = 0; i < graph->segment_count; i++)
        now.built += graph->segments[i].built != NULL;
    memcpy(info, &now, now.size);
    return HW_OK;
}
