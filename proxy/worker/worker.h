/* SPDX-License-Identifier: MIT */
/* worker.h - the library's view of a plugin in a worker process: the process, its channels, and the
 * reason of its end.
 *
 * A worker is two processes. hw-worker, the watcher, starts the plugin's process and watches over
 * it: it ends a plugin that is late, and reports why a plugin has ended. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "worker/channel.h"
#include "worker/late.h"
#include "worker/link.h"

#include <pthread.h>

struct worker {
    const struct hw_host *host;
    char name[64]; /* of the backend */
    struct late_limits limits;
    struct process process;
    struct wire *wire;
    int64_t id;           /* the number of the plugin's process */
    pthread_mutex_t lock; /* protects the socket, `why` and the members after it */
    char why[2048];
    uint32_t heard;                /* how many packets were read */
    struct remote_memory *shared;  /* a list of shared memory */
    int64_t counted[WIRE_DEVICES]; /* bytes that the pools have counted */
    uint32_t device_count;
    char vendor[256], version[256];
    uint32_t op_sizes[HW_OP_COUNT]; /* for the table */
    /* The size of each op's struct in the library or in the plugin. */
    uint32_t op_bytes[HW_OP_COUNT];
    struct hw_plugin_ops ops;
    uint32_t used[WIRE_CHANNELS / 32]; /* bits: channels of open queues */
    struct late late;                  /* used while the watcher is stopped */
    _Atomic bool ended;
    pthread_mutex_t asking[WIRE_QUEUES]; /* for the channels that threads share */
    struct channel channel[WIRE_CHANNELS];
};

struct proxy;
/* Allocates a worker that is not started yet. *file is a new descriptor of its shared memory. NULL:
 * out of memory or descriptors. */
struct worker *worker_create(const struct hw_host *host, const struct proxy *proxy,
                             int *file);
/* Ends the process if it has not ended. */
void worker_end(struct worker *worker);
/* Ends the process and frees the worker, which may be NULL. */
void worker_destroy(struct worker *worker);

/* When to give up on a call that closes something. The watcher's deadline, HW_PROBE_TIMEOUT, is
 * earlier, because its report says more. */
uint64_t worker_closing_deadline(const struct worker *worker);
/* Called after a call that closes something, which returns no status to the application. If the
 * process has ended during the call, the log says why. */
void worker_closed(struct worker *worker, bool had_ended);
/* Sets the plugin's message and returns `status`. */
int32_t worker_fail(const struct worker *worker, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The thread's last message. */
const char *worker_message(void);
/* HW_LOST; the plugin's message says why the process has ended. */
int32_t worker_lost(struct worker *worker);
/* HW_OK for CHANNEL_GOOD. For another fault, ends the worker and returns worker_lost(). */
int32_t worker_fault(struct worker *worker, enum channel_fault fault);
/* A channel_look. */
bool worker_look(struct worker *worker);
/* Reads new packets of the worker: lines for the log. */
void worker_hear(struct worker *worker);

/* A call on a channel that threads share, and the data of its reply. */
struct question {
    uint32_t channel; /* WIRE_CONTROL or WIRE_EVENTS */
    enum wire_call call;
    const void *arguments;
    uint32_t bytes;
    int file;   /* to send with the call; 0: none */
    void *data; /* of the reply */
    uint32_t data_bytes;
    uint64_t deadline; /* as microseconds_now(); then the process is stopped; 0: none */
};
/* Sends the call and waits for the reply. On an error, the plugin's message is set. */
int32_t worker_ask(struct worker *worker, const struct question *question);
/* Sends the call; there is no reply. */
void worker_tell(struct worker *worker, const struct question *question);

/* A channel for a queue; NULL if all are in use. */
struct channel *worker_take_channel(struct worker *worker);
void worker_give_channel(struct worker *worker, struct channel *channel);

#endif
