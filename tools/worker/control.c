/* SPDX-License-Identifier: MIT */
/* control.c - all calls except those of queues: devices, memory, queries, and the end. */
#define _GNU_SOURCE
#include "server.h"

#include "base/message.h"
#include "base/process.h"
#include "watched.h"
#include "worker/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int32_t server_fail(const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "the worker process does not know this %s", what);
    return plugin_message_set(HW_INTERNAL, text);
}

/* The data of a reply. */
struct answer {
    uint32_t bytes;
    union {
        uint32_t number;
        double ms;
        struct hw_device_info info;
        struct hw_kernel_info row;
        struct wire_support support;
        struct wire_packed packed;
    } data;
};

/* ---- devices and queues ---- */

static int32_t device_info(struct server *server, const struct wire_index *arguments,
                           struct answer *answer)
{
    answer->bytes = sizeof answer->data.info;
    answer->data.info = hw_no_facts();
    return server->table->device_info(server->plugin->self, (int32_t)arguments->device,
                                      &answer->data.info);
}

static int32_t device_open(struct server *server, const struct wire_index *arguments)
{
    void **device = &server->device[arguments->device];
    const int32_t status = server->table->device_open(server->plugin->self,
                                                      (int32_t)arguments->device, device);
    return status || *device ? status : server_fail("device");
}

static int32_t device_close(struct server *server, const struct wire_index *arguments)
{
    void **device = &server->device[arguments->device];
    if (*device)
        server->table->device_close(*device);
    *device = NULL;
    return HW_OK;
}

/* ---- memory ---- */

/* Receives the file of shared memory. The process exits if the plugin has closed the socket. -1: no
 * descriptor is free. */
static int take_file(void)
{
    const int file = link_receive_file(SERVER_SOCKET);
    if (file < 0 && errno != EMFILE)
        _exit(LOST_REPLY);
    return file;
}

static int32_t import(struct server *server, const struct wire_memory *arguments, int file,
                      struct memory *memory)
{
    memory->mapped = link_map(file, (size_t)arguments->bytes);
    memory->bytes = (size_t)arguments->bytes;
    if (!memory->mapped)
        return plugin_message_set(HW_NO_MEMORY,
                                  "the worker process cannot map shared memory");
    if (arguments->staging)
        return HW_OK;
    const struct hw_import desc = {
        .size = sizeof desc,
        .flags = arguments->flags & (HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY),
        .kind = "host",
        .handle = memory->mapped,
        .bytes = arguments->bytes,
    };
    return server->table->buffer_import(server->device[arguments->device], &desc,
                                        &memory->base);
}

static int32_t alloc(struct server *server, const struct wire_memory *arguments,
                     struct memory *memory)
{
    memory->base.bytes = arguments->bytes;
    memory->base.flags = arguments->flags;
    return server->table->buffer_alloc(server->device[arguments->device], arguments->bytes,
                                       arguments->flags, &memory->base);
}

static void memory_free(struct server *server, struct memory *memory)
{
    if (memory->base.impl)
        server->table->buffer_free(server->device[memory->device], &memory->base);
    if (memory->mapped)
        munmap(memory->mapped, memory->bytes);
    free(memory);
}

/* `file`: the file of shared memory; -1: the plugin allocates the memory. */
static int32_t memory_make(struct server *server, const struct wire_memory *arguments,
                           int file, struct answer *answer)
{
    struct memory *made = calloc(1, sizeof *made);
    if (!made)
        return plugin_message_set(HW_NO_MEMORY, "out of memory for a buffer");
    made->device = arguments->device;
    made->base.device = server->device[arguments->device];
    int32_t status = file >= 0 ? import(server, arguments, file, made)
                               : alloc(server, arguments, made);
    if (status)
        made->base.impl = NULL;
    answer->bytes = sizeof answer->data.number;
    answer->data.number = status ? 0 : objects_add(&server->memories, made);
    if (!status && !answer->data.number)
        status = plugin_message_set(HW_NO_MEMORY, "out of memory for a buffer");
    if (status)
        memory_free(server, made);
    return status;
}

/* Takes the file in any case, so that the next call does not get it. */
static int32_t memory_share(struct server *server, const struct wire_memory *arguments,
                            struct answer *answer)
{
    const int file = take_file();
    if (file < 0)
        return plugin_message_set(HW_NO_MEMORY, "the worker process has no descriptor left "
                                                "for shared memory (ulimit -n)");
    const int32_t status = memory_make(server, arguments, file, answer);
    close(file);
    return status;
}

static int32_t memory_drop(struct server *server, const struct wire_memory *arguments)
{
    struct memory *memory = objects_remove(&server->memories, arguments->memory);
    if (memory)
        memory_free(server, memory);
    return memory ? HW_OK : server_fail("buffer");
}

bool server_view(struct server *server, const struct wire_view *view,
                 struct hw_buffer *buffer)
{
    const struct memory *memory = objects_find(&server->memories, view->memory);
    if (!memory)
        return false;
    *buffer = memory->base;
    buffer->offset += view->offset;
    buffer->bytes = view->bytes;
    buffer->flags = (view->flags & ~(uint32_t)HW_BUFFER_HOST_VISIBLE) | memory->base.flags;
    if (buffer->host) {
        buffer->host = (char *)buffer->host + view->offset;
        buffer->flags |= HW_BUFFER_HOST_VISIBLE;
    }
    return true;
}

/* ---- questions ---- */

static int32_t supports(struct server *server, const struct wire_op *arguments,
                        struct answer *answer)
{
    struct wire_support *support = &answer->data.support;
    memset(support, 0, sizeof *support);
    answer->bytes = sizeof *support;
    const int32_t status = server->table->supports(
        server->device[arguments->device], arguments->op, arguments + 1, support->why,
        sizeof support->why, &support->scratch);
    support->why[sizeof support->why - 1] = '\0';
    return status ? plugin_message_set(status, support->why) : HW_OK;
}

static int32_t kernel_info(struct server *server, const struct wire_row *arguments,
                           struct answer *answer)
{
    answer->bytes = sizeof answer->data.row;
    answer->data.row = (struct hw_kernel_info){ .size = sizeof answer->data.row };
    return server->table->kernel_info(server->device[arguments->device], arguments->op,
                                      arguments->index, &answer->data.row);
}

static int32_t pack_size(struct server *server, const struct wire_pack *arguments,
                         struct answer *answer)
{
    struct wire_packed *packed = &answer->data.packed;
    *packed = (struct wire_packed){ 0 };
    answer->bytes = sizeof *packed;
    return server->table->pack_size(server->device[arguments->device], &arguments->src,
                                    &packed->bytes, &packed->layout);
}

/* ---- events ---- */

static int32_t event_create(struct server *server, const struct wire_event *arguments,
                            struct answer *answer)
{
    void *event = NULL;
    const int32_t status = server->table->event_create(server->device[arguments->device],
                                                       arguments->flags, &event);
    answer->bytes = sizeof answer->data.number;
    if (status)
        return status;
    answer->data.number = event ? objects_add(&server->events, event) : 0;
    if (answer->data.number)
        return HW_OK;
    if (event)
        server->table->event_destroy(event);
    return plugin_message_set(HW_NO_MEMORY, "out of memory for an event");
}

static int32_t event_destroy(struct server *server, const struct wire_event *arguments)
{
    void *event = objects_remove(&server->events, arguments->event);
    if (event)
        server->table->event_destroy(event);
    return event ? HW_OK : server_fail("event");
}

static int32_t graph_destroy(struct server *server, const struct wire_graph *arguments)
{
    struct chain *graph = objects_remove(&server->graphs, arguments->graph);
    chain_free(server, graph);
    return graph ? HW_OK : server_fail("graph");
}

static int32_t event_query(struct server *server, const struct wire_event *arguments)
{
    void *event = objects_find(&server->events, arguments->event);
    return event ? server->table->event_query(event) : server_fail("event");
}

static int32_t event_elapsed(struct server *server, const struct wire_event *arguments,
                             struct answer *answer)
{
    void *start = objects_find(&server->events, arguments->event),
         *end = objects_find(&server->events, arguments->end);
    answer->bytes = sizeof answer->data.ms;
    return start && end ? server->table->event_elapsed(start, end, &answer->data.ms)
                        : server_fail("event");
}

/* ---- all of them ---- */

static int32_t do_call(struct server *server, const struct wire_record *record,
                       struct answer *answer)
{
    const void *arguments = record + 1;
    switch (record->call) {
    case WIRE_CLOSE:
        server->table->close(server->plugin->self);
        return HW_OK;
    case WIRE_DEVICE_INFO:
        return device_info(server, arguments, answer);
    case WIRE_DEVICE_OPEN:
        return device_open(server, arguments);
    case WIRE_DEVICE_CLOSE:
        return device_close(server, arguments);
    case WIRE_QUEUE_OPEN:
        return lane_open(server, arguments);
    case WIRE_ALLOC:
        return memory_make(server, arguments, -1, answer);
    case WIRE_SHARE:
        return memory_share(server, arguments, answer);
    case WIRE_FREE:
        return memory_drop(server, arguments);
    case WIRE_SUPPORTS:
        return supports(server, arguments, answer);
    case WIRE_KERNEL_INFO:
        return kernel_info(server, arguments, answer);
    case WIRE_PACK_SIZE:
        return pack_size(server, arguments, answer);
    case WIRE_GRAPH_DESTROY:
        return graph_destroy(server, arguments);
    case WIRE_EVENT_CREATE:
        return event_create(server, arguments, answer);
    case WIRE_EVENT_DESTROY:
        return event_destroy(server, arguments);
    case WIRE_EVENT_QUERY:
        return event_query(server, arguments);
    case WIRE_EVENT_ELAPSED:
        return event_elapsed(server, arguments, answer);
    default:
        return server_fail("call");
    }
}

void control_run(struct server *server)
{
    for (bool closed = false; !closed;) {
        const struct wire_record *record = line_take(server, WIRE_CONTROL);
        struct answer answer;
        answer.bytes = 0;
        say_begin(server);
        closed = record->call == WIRE_CLOSE;
        plugin_message_clear();
        const int32_t status = do_call(server, record, &answer);
        line_answer(server, WIRE_CONTROL, record, status, &answer.data, answer.bytes);
        line_done(server, WIRE_CONTROL, record->units);
    }
    _exit(0);
}
