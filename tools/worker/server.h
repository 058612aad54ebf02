/* SPDX-License-Identifier: MIT */
/* server.h - the process that has the plugin: a thread for each queue of the library, one for calls
 * that wait for events, and one, the first, for all others. */
#ifndef WORKER_SERVER_H
#define WORKER_SERVER_H

#include "base/process.h"
#include "worker/wire.h"

#include "subject.h"

enum { SERVER_SOCKET = PROCESS_ANSWER + 1 }; /* to the library */

/* Memory of the plugin's, or staging memory, whose `base` has only an address. */
struct memory {
    struct hw_buffer base;
    void *mapped; /* NULL: not shared */
    size_t bytes;
    uint32_t device;
};

/* Numbers that stand for pointers in the library. 0 stands for none. */
struct objects {
    pthread_mutex_t lock;
    void **list;
    uint32_t count, room;
};

/* 0: out of memory. */
uint32_t objects_add(struct objects *objects, void *object);
/* NULL if there is none. */
void *objects_find(struct objects *objects, uint32_t number);
void *objects_remove(struct objects *objects, uint32_t number);

struct server {
    struct subject subject;
    struct plugin *plugin;
    const struct hw_plugin *table; /* the plugin's; empty slots are filled */
    struct wire *wire;
    void *device[WIRE_DEVICES];
    struct objects memories, events, graphs;
    /* Of each channel, what has been done: as its head, with more bits. */
    _Atomic uint64_t done[WIRE_CHANNELS];
};

/* ---- line.c: the worker's side of a channel ---- */

/* Waits for a call. */
const struct wire_record *line_take(struct server *server, uint32_t channel);
/* Writes the reply, if the library waits for one. The plugin's message is that of an error. */
void line_answer(struct server *server, uint32_t channel, const struct wire_record *record,
                 int32_t status, const void *data, uint32_t bytes);
/* The call is done: the library may write there. */
void line_done(struct server *server, uint32_t channel, uint32_t units);
/* Waits until the calls of a channel up to this position are done. */
void line_await(struct server *server, uint32_t channel, uint64_t position);

/* ---- graph.c ---- */

struct chain;
/* Adds a node to the graph, which is made if it is NULL. chain_build() says what is wrong. */
void chain_add(struct server *server, struct chain **graph, const struct wire_op *node);
/* Takes the graph, and gives its number. */
int32_t chain_build(struct server *server, void *queue, struct chain *graph,
                    uint32_t *number);
int32_t chain_launch(struct server *server, void *queue, uint32_t number);
/* The graph may be NULL. */
void chain_free(struct server *server, struct chain *graph);

/* ---- control.c, lane.c, events.c ---- */

/* Serves until the library says that it closes the plugin. Does not return. */
void control_run(struct server *server) __attribute__((noreturn));
/* Opens a queue and starts its thread. */
int32_t lane_open(struct server *server, const struct wire_queue *arguments);
/* Starts the thread. False if that fails. */
bool events_start(struct server *server);

/* A buffer of the library's; false if the worker does not have its memory. */
bool server_view(struct server *server, const struct wire_view *view,
                 struct hw_buffer *buffer);
/* Sets the message. */
int32_t server_fail(const char *what);

/* ---- say.c ---- */

/* A line of the log. It is kept until say_begin(), because the verdict comes first. */
void say_line(void *of, int32_t level, const char *text);
void say_begin(struct server *server);

#endif
