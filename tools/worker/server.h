/* SPDX-License-Identifier: MIT */
/* server.h - the plugin's process: a thread for each queue of the library, one for calls that wait
 * for events, and the first thread for all other calls. */
#ifndef WORKER_SERVER_H
#define WORKER_SERVER_H

#include "base/process.h"
#include "worker/wire.h"

#include "subject.h"

enum { SERVER_SOCKET = PROCESS_ANSWER + 1 }; /* to the library */

/* Memory of the plugin, or staging memory, of whose `base` only the address is set. */
struct memory {
    struct hw_buffer base;
    void *mapped; /* NULL: not shared */
    size_t bytes;
    uint32_t device;
};

/* Numbers that represent pointers in messages to the library. 0 represents NULL. */
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
    /* The finished units of each channel: like its head, but with more bits. */
    _Atomic uint64_t done[WIRE_CHANNELS];
};

/* ---- line.c: the worker's side of a channel ---- */

/* Waits for a call. */
const struct wire_record *line_take(struct server *server, uint32_t channel);
/* Writes the reply, if the library waits for one. After an error, the reply has the plugin's
 * message. */
void line_answer(struct server *server, uint32_t channel, const struct wire_record *record,
                 int32_t status, const void *data, uint32_t bytes);
/* Marks the call as done: the library may reuse its space. */
void line_done(struct server *server, uint32_t channel, uint32_t units);
/* Waits until the channel's calls up to this position are done. */
void line_await(struct server *server, uint32_t channel, uint64_t position);

/* ---- graph.c ---- */

struct chain;
/* Adds a node to the graph, which is created if it is NULL. chain_build() reports errors. */
void chain_add(struct server *server, struct chain **graph, const struct wire_op *node);
/* Takes ownership of the graph, and returns its number. */
int32_t chain_build(struct server *server, void *queue, struct chain *graph,
                    uint32_t *number);
int32_t chain_launch(struct server *server, void *queue, uint32_t number);
/* The graph may be NULL. */
void chain_free(struct server *server, struct chain *graph);

/* ---- control.c, lane.c, events.c ---- */

/* Serves until the library closes the plugin. Does not return. */
void control_run(struct server *server) __attribute__((noreturn));
/* Opens a queue and starts its thread. */
int32_t lane_open(struct server *server, const struct wire_queue *arguments);
/* Starts the thread. False if that fails. */
bool events_start(struct server *server);

/* Fills in a buffer of the library; false if the worker does not have its memory. */
bool server_view(struct server *server, const struct wire_view *view,
                 struct hw_buffer *buffer);
/* Sets the message. */
int32_t server_fail(const char *what);

/* ---- say.c ---- */

/* Sends a line of the log. Lines before say_begin() are kept, because the verdict comes first. */
void say_line(void *of, int32_t level, const char *text);
void say_begin(struct server *server);

#endif
