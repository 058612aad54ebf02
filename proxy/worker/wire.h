/* SPDX-License-Identifier: MIT */
/* wire.h - the protocol between hw_worker.so and a worker process, in shared memory. "The library"
 * here is the process that has loaded hw_worker.so.
 *
 * A channel has a ring of calls, which the library writes, and one reply. Each queue has a channel
 * that one thread of the worker serves, so the calls of a queue stay in order. Two more channels
 * are for everything else. Most calls have no reply. The library does not trust the worker: it
 * reads only positions and replies from this memory, and checks both. */
#ifndef WORKER_WIRE_H
#define WORKER_WIRE_H

#include <hw/plugin.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    WIRE_UNIT = 64, /* bytes; each call begins at a multiple, and positions count units */
    WIRE_RING = 1 << 16,                /* bytes of a ring */
    WIRE_UNITS = WIRE_RING / WIRE_UNIT, /* a power of two, because positions wrap */
    WIRE_CHANNELS = 256,
    /* The channel of calls that belong to no queue and return soon; the channel of calls that wait
     * for an event; the first channel of a queue. */
    WIRE_CONTROL = 0,
    WIRE_EVENTS = 1,
    WIRE_QUEUES = 2,
    WIRE_TEXT = 1024, /* bytes of a message, with its NUL */
    WIRE_DATA = 1024, /* bytes of the data of any reply */
    WIRE_DEVICES = 256,
    WIRE_STRUCT = 4096,    /* the most bytes of the struct of an op */
    WIRE_STAGING = 4 << 20 /* bytes of a queue's staging memory, if it has any */
};

/* X(NAME): the calls. Each comment names the arguments (structs below) and, behind a colon, the
 * data of the reply. */
#define WIRE_CALLS(X)                                                                      \
    X(PAD)           /* nothing: the next call is at the beginning of the ring */          \
    X(CLOSE)         /* closes the plugin and ends the process */                          \
    X(DEVICE_INFO)   /* wire_index: struct hw_device_info */                               \
    X(DEVICE_OPEN)   /* wire_index */                                                      \
    X(DEVICE_CLOSE)  /* wire_index */                                                      \
    X(QUEUE_OPEN)    /* wire_queue */                                                      \
    X(QUEUE_CLOSE)   /* nothing */                                                         \
    X(WAIT)          /* nothing */                                                         \
    X(ALLOC)         /* wire_memory */                                                     \
    X(SHARE)         /* wire_memory; its file comes through the socket */                  \
    X(FREE)          /* wire_memory */                                                     \
    X(TRANSFER)      /* wire_transfer */                                                   \
    X(OP)            /* wire_op, the op's struct, a wire_view for each buffer */           \
    X(GRAPH_NODE)    /* like OP; the next node of the graph that the queue builds */       \
    X(GRAPH_BUILD)   /* nothing: uint32_t */                                               \
    X(GRAPH_LAUNCH)  /* wire_graph */                                                      \
    X(GRAPH_DESTROY) /* wire_graph */                                                      \
    X(SUPPORTS)      /* like OP, without buffers: wire_support */                          \
    X(KERNEL_INFO)   /* wire_row: struct hw_kernel_info */                                 \
    X(PACK_SIZE)     /* wire_pack: wire_packed */                                          \
    X(PACK)          /* wire_pack, which contains the two views */                         \
    X(EVENT_CREATE)  /* wire_event */                                                      \
    X(EVENT_DESTROY) /* wire_event */                                                      \
    X(EVENT_RECORD)  /* wire_event */                                                      \
    X(EVENT_WAIT)    /* wire_event */                                                      \
    X(EVENT_QUERY)   /* wire_event */                                                      \
    X(EVENT_SYNC)    /* wire_event */                                                      \
    X(EVENT_ELAPSED) /* wire_event: double */

enum wire_call {
#define X(NAME) WIRE_##NAME,
    WIRE_CALLS(X)
#undef X
        WIRE_CALL_COUNT
};

struct wire_record {
    uint32_t units; /* of the whole call, this struct included */
    uint32_t call;  /* enum wire_call */
    uint32_t bytes; /* of the arguments that follow */
    uint32_t answered;
};

/* A struct hw_buffer: a part of a memory in the worker. */
struct wire_view {
    uint32_t memory, flags;
    uint64_t offset, bytes;
};

struct wire_index {
    uint32_t device;
};
struct wire_queue {
    uint32_t device, flags, channel;
    char kernel[4096];
};
struct wire_memory {
    uint32_t memory, device, flags;
    uint32_t staging; /* 1: the worker only maps it, the plugin does not get it */
    uint64_t bytes;
};
struct wire_transfer {
    struct wire_view dst, src; /* memory 0: the queue's staging memory */
    uint64_t dst_offset, src_offset, bytes, rows, dst_pitch, src_pitch;
    uint32_t staging; /* the id of the staging memory */
    uint32_t reserved;
};
/* In tensors, `buffer` is the number of a view, counted from 1. */
struct wire_op {
    uint32_t op, bytes, device, views;
};
struct wire_graph {
    uint32_t graph;
};
struct wire_support {
    uint64_t scratch;
    char why[WIRE_TEXT - sizeof(uint64_t)];
};
struct wire_row {
    uint32_t device, op, index;
};
struct wire_pack {
    uint32_t device, views;
    struct hw_tensor dst, src;
    struct wire_view view[2];
};
struct wire_packed {
    uint64_t bytes;
    uint32_t layout, reserved;
};
/* For EVENT_WAIT, `channel` and `position` say where the event is recorded. */
struct wire_event {
    uint32_t event, device, flags, end, channel, reserved;
    uint64_t position;
};

struct wire_reply {
    int32_t status;
    uint32_t bytes;
    char text[WIRE_TEXT];
    alignas(8) unsigned char data[WIRE_DATA];
};

/* Library and worker write separate cache lines. A position is the number of all units so far,
 * modulo 2^32. */
struct wire_channel {
    /* Written by the library: the position of the next call. */
    alignas(WIRE_UNIT) _Atomic uint32_t tail;
    _Atomic uint32_t host_sleeps; /* how many threads sleep until head changes */
    /* Written by the worker: all calls before this position are done. */
    alignas(WIRE_UNIT) _Atomic uint32_t head;
    _Atomic uint32_t worker_sleeps; /* 1: the worker sleeps until this is 0 */
    alignas(WIRE_UNIT) struct wire_reply reply;
    alignas(WIRE_UNIT) unsigned char ring[WIRE_RING];
};

/* The worker fills this before it sends its verdict. */
struct wire_table {
    char vendor[256], version[256];
    uint32_t abi, op_count;
    uint32_t device_count;
    uint64_t ops; /* bit 1 << op for each op that the plugin has */
    uint32_t op_sizes[HW_OP_COUNT];
};

struct wire {
    _Atomic uint32_t ended; /* a hint: the socket says why */
    _Atomic uint32_t said;  /* how many packets the worker has sent */
    _Atomic uint32_t reply; /* bytes of the reply about the start; 0: not known yet */
    int64_t process;        /* the number of the plugin's process */
    _Atomic uint32_t lanes; /* how many channels of queues have ever been used */
    struct wire_table table;
    /* For each device, the bytes that the library has allocated and that the plugin has counted. */
    struct {
        alignas(WIRE_UNIT) _Atomic int64_t allocated;
        _Atomic int64_t counted;
    } memory[WIRE_DEVICES];
    struct wire_channel channel[WIRE_CHANNELS];
};

/* ---- the socket ---- */

/* A packet that the worker sends after the verdict: a line for the log. The last packet says why
 * the plugin's process has ended. */
struct wire_packet {
    uint32_t level; /* enum hw_log_level; 0: the process has ended */
    char text[WIRE_TEXT];
};

#endif
