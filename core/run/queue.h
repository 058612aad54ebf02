/* SPDX-License-Identifier: MIT */
/* queue.h - queues: what hw_submit() reads of one, and opening, waiting and closing. */
#ifndef HW_RUN_QUEUE_H
#define HW_RUN_QUEUE_H

#include "core.h"
#include "run/ops.h"

struct call_counts {
    _Atomic uint64_t calls, fallbacks, fallback_bytes, staged_bytes, copied_views;
};

/* One writer, readers anywhere: no read-modify-write is needed. */
static inline void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

struct hw_call_stats call_stats(const struct call_counts *counts);

/* The form of an operand that was seen to be ordinary: see ops.c. */
struct seen_form {
    _Alignas(16) struct hw_tensor like; /* its dtype, rank, extents and strides count */
    uint64_t reach;                     /* bytes from its first element to its last */
    uint64_t align;                     /* what address and offset have no bits of */
};
/* The forms of a matmul's operands that fit together. */
struct seen_matmul {
    struct seen_form a, b, c;
    uint64_t transposes; /* both words of the op */
};
#define SEEN_SHAPES 4 /* matmuls that a queue remembers */

struct hw_queue {
    /* What hw_submit() reads. */
    uint32_t generation;
    bool host_tensors;                 /* the device reads and writes any host address */
    uint32_t cold_traits[HW_OP_COUNT]; /* bits of enum trait that take the cold path */
    struct hw_device *device;
    void *device_impl;
    void *impl;
    struct hw_plugin_ops ops;
    struct call_counts calls[HW_OP_COUNT];
    struct seen_form seen[HW_OP_COUNT][2]; /* an op's rows, and its weight */
    struct seen_matmul seen_matmul[SEEN_SHAPES];
    /* The rest. */
    uint32_t flags;
    bool inner;                 /* opened by another queue: it has no fallback */
    struct hw_graph *recording; /* NULL: it is not */
    struct hw_queue **helpers;  /* by position in the context's devices; inner queues */
    struct buffer *idle;        /* scratch of the device, in stream order ready for reuse */
    struct buffer *busy;        /* given back when the queue has passed */
    uint64_t busy_bytes;
    void **busy_memory; /* of malloc, likewise */
    uint32_t busy_count;
    struct pending_write *pending;
    enum hw_status error; /* of deferred work, until the next wait */
    char *error_text;
    struct hw_queue *next, *prev;
};

/* HW_OK, or HW_INVALID, HW_FORKED, HW_LOST: the first line of every entry with a queue. */
enum hw_status queue_ready(struct hw_queue *queue, const char *function);
enum hw_status queue_make(struct hw_device *device, const struct hw_queue_desc *desc,
                          struct hw_queue **queue);
void queue_destroy(struct hw_queue *queue);
/* Waits, then carries out the pending writes. An error is returned, and kept for the next
 * hw_queue_wait(). */
enum hw_status queue_settle(struct hw_queue *queue);
/* The last step of every call that was accepted: a HW_QUEUE_SYNCHRONOUS queue has passed it when it
 * returns. */
enum hw_status settle_synchronous(struct hw_queue *queue);
/* The same after an error, whose words stay: what is in flight still uses memory that is to go. */
void queue_drain(struct hw_queue *queue);
/* The inner queue on another device. */
enum hw_status queue_helper(struct hw_queue *queue, struct hw_device *device,
                            struct hw_queue **helper);
/* Which operands take the cold path on this queue. */
void queue_set_cold_traits(struct hw_queue *queue);

#endif
