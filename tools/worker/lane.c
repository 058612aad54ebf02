/* SPDX-License-Identifier: MIT */
/* lane.c - a queue: its thread calls the plugin in the order of the library's calls. If a call
 * fails that the library does not wait for, the next wait reports it. */
#include "server.h"

#include "base/message.h"
#include "call/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VIEWS = 4096 }; /* buffers in flight; when all are used, the queue is waited for */

struct lane {
    struct server *server;
    uint32_t channel, device;
    void *queue;
    int32_t error; /* the first one since the last wait */
    char text[WIRE_TEXT];
    struct chain *graph; /* to which nodes are added; NULL: none */
    uint32_t used;
    struct hw_buffer view[VIEWS]; /* they live until the queue has completed */
};

/* ---- errors ---- */

static void keep(struct lane *lane, int32_t status)
{
    if (!status || lane->error)
        return;
    lane->error = status;
    snprintf(lane->text, sizeof lane->text, "%s", plugin_message());
}

static int32_t wait_for_queue(struct lane *lane)
{
    plugin_message_clear();
    keep(lane, lane->server->table->queue_wait(lane->queue));
    lane->used = 0;
    const int32_t status = lane->error;
    return status ? plugin_message_set(status, lane->text) : HW_OK;
}

/* ---- buffers ---- */

/* NULL if the worker does not have its memory. */
static struct hw_buffer *view_of(struct lane *lane, const struct wire_view *view)
{
    struct hw_buffer *buffer = &lane->view[lane->used];
    if (!server_view(lane->server, view, buffer))
        return NULL;
    lane->used++;
    return buffer;
}

static void make_room(struct lane *lane, uint32_t views)
{
    if (lane->used + views > VIEWS)
        (void)wait_for_queue(lane);
}

/* Replaces the number of a buffer in the tensor by the buffer. */
static bool put_view(struct lane *lane, struct hw_tensor *tensor,
                     const struct wire_view *views, uint32_t count)
{
    const uintptr_t number = (uintptr_t)tensor->buffer;
    if (!number)
        return true;
    tensor->buffer = number <= count ? view_of(lane, &views[number - 1]) : NULL;
    return tensor->buffer != NULL;
}

/* ---- calls ---- */

static int32_t call_op(const struct hw_plugin_ops *ops, uint32_t op, void *device,
                       void *queue, const void *args)
{
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        return ops->name(device, queue, args);
        HW_OPS(X)
#undef X
    default:
        return server_fail("op");
    }
}

static int32_t do_op(struct lane *lane, void *at)
{
    const struct wire_op *head = at;
    unsigned char *args = (unsigned char *)at + sizeof *head;
    const struct wire_view *views = (const void *)(args + head->bytes);
    if (head->op >= HW_OP_COUNT || head->views > MAX_OPERANDS)
        return server_fail("op");
    const struct op_row *row = &op_rows[head->op];
    make_room(lane, head->views);
    for (uint32_t i = 0; i < row->operand_count; i++)
        if (!put_view(lane, operand_in(args, &row->operands[i]), views, head->views))
            return server_fail("buffer");
    return call_op(&lane->server->plugin->ops, head->op, lane->server->device[lane->device],
                   lane->queue, args);
}

static int32_t do_transfer(struct lane *lane, const struct wire_transfer *t)
{
    const struct memory *staging = t->staging
                                       ? objects_find(&lane->server->memories, t->staging)
                                       : NULL;
    struct hw_transfer transfer = { .size = sizeof transfer,
                                    .dst_offset = t->dst_offset,
                                    .src_offset = t->src_offset,
                                    .bytes = t->bytes,
                                    .rows = t->rows,
                                    .dst_pitch = t->dst_pitch,
                                    .src_pitch = t->src_pitch };
    make_room(lane, 2);
    if ((!t->dst.memory || !t->src.memory) && !staging)
        return server_fail("staging memory");
    if (t->dst.memory)
        transfer.dst = view_of(lane, &t->dst);
    else
        transfer.dst_host = (char *)staging->mapped + t->dst_offset;
    if (t->src.memory)
        transfer.src = view_of(lane, &t->src);
    else
        transfer.src_host = (const char *)staging->mapped + t->src_offset;
    if ((t->dst.memory && !transfer.dst) || (t->src.memory && !transfer.src))
        return server_fail("buffer");
    transfer.dst_offset = transfer.dst ? t->dst_offset : 0;
    transfer.src_offset = transfer.src ? t->src_offset : 0;
    return lane->server->table->transfer(lane->queue, &transfer);
}

static int32_t do_pack(struct lane *lane, struct wire_pack *pack)
{
    make_room(lane, 2);
    if (!put_view(lane, &pack->dst, pack->view, pack->views) ||
        !put_view(lane, &pack->src, pack->view, pack->views))
        return server_fail("buffer");
    return lane->server->table->pack(lane->queue, &pack->dst, &pack->src);
}

static int32_t do_build(struct lane *lane, uint32_t *number)
{
    struct chain *graph = lane->graph;
    lane->graph = NULL;
    return chain_build(lane->server, lane->queue, graph, number);
}

static int32_t do_launch(struct lane *lane, const struct wire_graph *arguments)
{
    return chain_launch(lane->server, lane->queue, arguments->graph);
}

/* An event that could not be recorded appears complete, so all earlier work must be complete. */
static int32_t record(struct lane *lane, void *event)
{
    const int32_t status = lane->server->table->event_record(event, lane->queue);
    keep(lane, status);
    if (status)
        (void)wait_for_queue(lane);
    return status;
}

/* If the plugin cannot let a queue wait, this thread waits. */
static int32_t wait_for_event(struct lane *lane, void *event)
{
    const struct hw_plugin *table = lane->server->table;
    const int32_t status = table->event_wait(lane->queue, event);
    if (!status)
        return HW_OK;
    if (status != HW_UNSUPPORTED)
        keep(lane, status); /* with its message */
    const int32_t late = table->event_sync(event);
    return status == HW_UNSUPPORTED ? late : status;
}

/* The event may be recorded in another queue whose thread has not reached that call yet. */
static int32_t do_event(struct lane *lane, uint32_t call,
                        const struct wire_event *arguments)
{
    void *event = objects_find(&lane->server->events, arguments->event);
    if (!event)
        return server_fail("event");
    if (call == WIRE_EVENT_RECORD)
        return record(lane, event);
    line_await(lane->server, arguments->channel, arguments->position);
    return wait_for_event(lane, event);
}

static int32_t do_wait(struct lane *lane)
{
    const int32_t status = wait_for_queue(lane);
    lane->error = HW_OK;
    return status;
}

static int32_t do_close(struct lane *lane)
{
    chain_free(lane->server, lane->graph);
    lane->server->table->queue_close(lane->queue);
    return HW_OK;
}

/* The tensors in the ring may be changed: this process owns its contents now. `number`: the data of
 * a reply. */
static int32_t do_call(struct lane *lane, const struct wire_record *record,
                       uint32_t *number)
{
    void *arguments = (void *)(uintptr_t)(record + 1);
    switch (record->call) {
    case WIRE_OP:
        return do_op(lane, arguments);
    case WIRE_WAIT:
        return do_wait(lane);
    case WIRE_TRANSFER:
        return do_transfer(lane, arguments);
    case WIRE_GRAPH_NODE:
        chain_add(lane->server, &lane->graph, arguments);
        return HW_OK;
    case WIRE_GRAPH_BUILD:
        return do_build(lane, number);
    case WIRE_GRAPH_LAUNCH:
        return do_launch(lane, arguments);
    case WIRE_PACK:
        return do_pack(lane, arguments);
    case WIRE_EVENT_RECORD:
    case WIRE_EVENT_WAIT:
        return do_event(lane, record->call, arguments);
    case WIRE_QUEUE_CLOSE:
        return do_close(lane);
    default:
        return server_fail("call");
    }
}

static void *run(void *of)
{
    struct lane *lane = of;
    struct server *server = lane->server;
    const uint32_t channel = lane->channel;
    bool closed = false;
    while (!closed) {
        const struct wire_record *record = line_take(server, channel);
        closed = record->call == WIRE_QUEUE_CLOSE;
        uint32_t number = 0;
        plugin_message_clear();
        const int32_t status = do_call(lane, record, &number);
        if (!record->answered)
            keep(lane, status);
        line_answer(server, channel, record, status, &number,
                    record->call == WIRE_GRAPH_BUILD ? sizeof number : 0);
        if (closed)
            free(lane); /* the library may open another queue on the channel at once */
        line_done(server, channel, record->units);
    }
    return NULL;
}

/* ---- opening ---- */

static bool start(struct lane *lane)
{
    pthread_t thread;
    return !pthread_create(&thread, NULL, run, lane) && !pthread_detach(thread);
}

/* Queues are opened one at a time. */
static void note_lane(struct wire *wire, uint32_t channel)
{
    const uint32_t lanes = channel - WIRE_QUEUES + 1;
    if (lanes > atomic_load(&wire->lanes))
        atomic_store(&wire->lanes, lanes);
}

int32_t lane_open(struct server *server, const struct wire_queue *arguments)
{
    const struct hw_queue_desc desc = { .size = sizeof desc,
                                        .flags = arguments->flags,
                                        .kernel = arguments->kernel };
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return plugin_message_set(HW_NO_MEMORY, "out of memory for a queue");
    note_lane(server->wire, arguments->channel);
    lane->server = server;
    lane->channel = arguments->channel;
    lane->device = arguments->device;
    int32_t status = server->table->queue_open(server->device[arguments->device], &desc,
                                               &lane->queue);
    if (!status && (!lane->queue || !start(lane))) {
        if (lane->queue)
            server->table->queue_close(lane->queue);
        status = plugin_message_set(HW_NO_MEMORY, "no thread can be started for a queue");
    }
    if (status)
        free(lane);
    return status;
}
