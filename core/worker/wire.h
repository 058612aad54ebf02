/* SPDX-License-Identifier: MIT */
/* wire.h - what the library and a worker process say to each other, in memory that both have.
 *
 * A channel is a ring of calls, which the library writes, and one reply. Each queue has a channel,
 * which a thread of the worker serves, so that the calls of a queue stay in order; everything else
 * goes through two more. Most calls are not answered. The worker is not trusted: the library reads
 * from this memory only how far the worker has come, and replies, and checks both. */
#ifndef HW_WORKER_WIRE_H
#define HW_WORKER_WIRE_H

#include "core.h"

#include <stdalign.h>

enum {
    WIRE_UNIT = 64, /* bytes; calls begin at multiples of it, and positions count them */
    WIRE_RING = 1 << 16,                /* bytes of a ring */
    WIRE_UNITS = WIRE_RING / WIRE_UNIT, /* a power of two, because positions wrap */
    WIRE_CHANNELS = 256,
    WIRE_CONTROL =
        0, /* channels: of all calls that are not a queue's and return soon, ... */
    WIRE_EVENTS = 1,  /* of those that wait for an event, ... */
    WIRE_QUEUES = 2,  /* and from here on of queues */
    WIRE_TEXT = 1024, /* of a message, with its NUL */
    WIRE_DATA = 1024, /* of a reply: at least that of each call */
    WIRE_DEVICES = 256,
    WIRE_STAGING = 4 << 20 /* bytes of a queue's staging memory, if it has any */
};

/* X(NAME): the calls. Their arguments are structs below. */
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
    X(GRAPH_NODE)    /* the same: the next node of the graph that the queue builds */      \
    X(GRAPH_BUILD)   /* nothing: uint32_t */                                               \
    X(GRAPH_LAUNCH)  /* wire_graph */                                                      \
    X(GRAPH_DESTROY) /* wire_graph */                                                      \
    X(SUPPORTS)      /* like OP, without buffers: wire_support */                          \
    X(KERNEL_INFO)   /* wire_row: struct hw_kernel_info */                                 \
    X(PACK_SIZE)     /* wire_pack: wire_packed */                                          \
    X(PACK)          /* wire_pack, which the two views are part of */                      \
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
    uint32_t bytes; /* that follow */
    uint32_t answered;
};

/* A part of a memory of the worker's: struct hw_buffer. */
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
    uint32_t staging; /* not the plugin's: it is only mapped */
    uint64_t bytes;
};
struct wire_transfer {
    struct wire_view dst, src; /* memory 0: the queue's staging memory */
    uint64_t dst_offset, src_offset, bytes, rows, dst_pitch, src_pitch;
    uint32_t staging; /* its memory */
    uint32_t reserved;
};
/* In tensors, `buffer` is the number of its view, from 1. */
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
/* `channel` and `position`: of the record that EVENT_WAIT waits for. */
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

/* Each side writes cache lines of its own. A position is a number of units since the beginning of
 * time, modulo 2^32. */
struct wire_channel {
    alignas(
        WIRE_UNIT) _Atomic uint32_t tail; /* the library's: where the next call begins */
    _Atomic uint32_t host_sleeps;         /* how many threads sleep until head changes */
    alignas(
        WIRE_UNIT) _Atomic uint32_t head; /* the worker's: all calls before it are done */
    _Atomic uint32_t worker_sleeps;       /* 1: it sleeps until this is 0 */
    alignas(WIRE_UNIT) struct wire_reply reply;
    alignas(WIRE_UNIT) unsigned char ring[WIRE_RING];
};

/* Written by the worker before its verdict. */
struct wire_table {
    char vendor[256];
    uint32_t abi, op_count;
    uint32_t op_sizes[HW_OP_COUNT];
};

struct wire {
    _Atomic uint32_t ended; /* a hint: the socket says why */
    _Atomic uint32_t said;  /* how many packets the worker has sent */
    int64_t process;        /* of the plugin */
    _Atomic uint32_t lanes; /* channels of queues, from the first on, that have been used */
    struct wire_table table;
    /* Bytes of each device: what the library has allocated, and what the plugin has counted. */
    struct {
        alignas(WIRE_UNIT) _Atomic int64_t allocated;
        _Atomic int64_t counted;
    } memory[WIRE_DEVICES];
    struct wire_channel channel[WIRE_CHANNELS];
};

/* ---- the socket ---- */

/* A packet of the worker's, once the verdict is complete: a line for the log, or, the last one, why
 * the plugin's process has ended. */
struct wire_packet {
    uint32_t level; /* enum hw_log_level; 0: it has ended */
    char text[WIRE_TEXT];
};

#endif
