/* SPDX-License-Identifier: MIT */
/* worker.h - a plugin in another process, as the library sees it: the process, its channels, and
 * what is left of it when it has ended. */
#ifndef HW_WORKER_WORKER_H
#define HW_WORKER_WORKER_H

#include "base/process.h"
#include "worker/channel.h"
#include "worker/late.h"

struct worker {
    struct plugin *plugin;
    struct process process;
    struct wire *wire;
    int64_t id;           /* of the plugin's process */
    pthread_mutex_t lock; /* protects the socket, `why` and what follows it */
    char why[2048];
    uint32_t heard;                 /* packets */
    struct remote_memory *shared;   /* a list: memory that both processes have */
    int64_t counted[WIRE_DEVICES];  /* bytes that the pools know about */
    struct hw_device_info *devices; /* as the plugin reported them */
    uint32_t device_count;
    char vendor[256], version[256];
    uint32_t op_sizes[HW_OP_COUNT]; /* for the table */
    uint32_t op_bytes
        [HW_OP_COUNT]; /* of an op's struct, as the library or the plugin knows it */
    struct hw_plugin_ops ops;
    uint32_t used[WIRE_CHANNELS / 32]; /* bits: channels of open queues */
    struct late late; /* for as long as the process that watches over it is stopped */
    _Atomic bool ended;
    pthread_mutex_t asking[WIRE_QUEUES]; /* for the channels that threads share */
    struct channel channel[WIRE_CHANNELS];
};

/* Memory for a worker that is to be started, and the file that it gets: a new descriptor. NULL:
 * out of memory or descriptors. */
struct worker *worker_create(struct plugin *plugin, int *file);
/* Ends the process if it has not ended. */
void worker_end(struct worker *worker);
/* The same, and frees the worker, which may be NULL. */
void worker_destroy(struct worker *worker);

/* When to give up on a call that closes something. The process that watches over the plugin's gives
 * it HW_PROBE_TIMEOUT, and knows more about its end: so this is somewhat later. */
uint64_t worker_closing_deadline(const struct worker *worker);
/* After such a call, which tells the application nothing: if the process has ended meanwhile, the
 * log says why. */
void worker_closed(struct worker *worker, bool had_ended);
/* HW_LOST, and the plugin's message says why the process has ended. */
int32_t worker_lost(struct worker *worker);
/* The same because of what a channel said, if it said that. */
int32_t worker_fault(struct worker *worker, enum channel_fault fault);
/* A channel_look. */
bool worker_look(struct worker *worker);
/* Takes what the worker has to say: lines for the log, and memory that it counts. */
void worker_hear(struct worker *worker);

/* A call that threads share a channel for, and its answer. */
struct question {
    uint32_t channel; /* WIRE_CONTROL or WIRE_EVENTS */
    enum wire_call call;
    const void *arguments;
    uint32_t bytes;
    int file;   /* that goes with it; 0: none */
    void *data; /* of the answer */
    uint32_t data_bytes;
    uint64_t deadline; /* microseconds_now(), after which the process is stopped; 0: none */
};
/* Asks and waits. On an error, the plugin's message is set. */
int32_t worker_ask(struct worker *worker, const struct question *question);
/* The same without an answer. */
void worker_tell(struct worker *worker, const struct question *question);

/* A channel for a queue; NULL if all are in use. */
struct channel *worker_take_channel(struct worker *worker);
void worker_give_channel(struct worker *worker, struct channel *channel);

#endif
