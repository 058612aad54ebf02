/* SPDX-License-Identifier: MIT */
/* queue.h - queues: opening, waiting, closing. */
#ifndef HW_CALL_QUEUE_H
#define HW_CALL_QUEUE_H

#include "call/ops.h"
#include "core.h"

/* The fields of struct hw_call_stats. */
#define CALL_COUNTS(X)                                                                     \
    X(calls)                                                                               \
    X(fallbacks)                                                                           \
    X(fallback_bytes)                                                                      \
    X(staged_bytes)                                                                        \
    X(copied_views)                                                                        \
    X(failed)                                                                              \
    X(compared)                                                                            \
    X(wrong)                                                                               \
    X(routed)

struct call_counts {
#define X(name) _Atomic uint64_t name;
    CALL_COUNTS(X)
#undef X
};

/* There is one writer and any number of readers, so no atomic read-modify-write is needed. */
static inline void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* Adds the counts to a sum. */
void add_counts(const struct call_counts *counts, struct hw_call_stats *sum);

enum {
    SEEN_ALIGNMENT = 64, /* a cache line */
    SEEN_CALLS = 32,     /* several times the number of forms in a model's layers */
    SEEN_SLOTS = 512     /* enough that two forms seldom share a slot */
};

/* Distances between operands wrap like addresses. This value stands for no distance: two operands
 * that fit are never so far apart. */
#define NO_DISTANCE (UINT64_C(1) << 63)

/* Conditions for the address of an operand. `gap_max` and `in_place` are distances from the end of
 * the last operand to the start of this one. */
struct seen_place {
    uint64_t bytes;          /* from the first element to the last */
    uint64_t forbidden_bits; /* bits that its offset, or its host address, must not have */
    uint64_t gap_max;        /* the largest distance if the two operands do not overlap */
    uint64_t in_place; /* the distance if both begin at the same byte; or NO_DISTANCE */
};

/* A call that the full check accepted: see seen.h. */
struct seen_call {
    uint64_t stamp; /* stamp_of() the queue when these addresses were checked */
    void *plan;     /* the plugin's, for calls of this form; NULL: it has none */
    uint32_t op;
    uint32_t absent;        /* bit i: operand i is absent */
    uint32_t outputs;       /* bit i: operand i is an output, and not the last operand */
    uint32_t skip_count;    /* calls on other addresses before new ones are remembered */
    struct seen_call *next; /* an earlier call of the same slot */
    uint32_t slot;
    bool packed; /* calls of this form have a packed operand */
    _Alignas(SEEN_ALIGNMENT) union any_op args; /* later calls may replace the addresses */
    struct seen_place place[MAX_OPERANDS];
};

/* The latest calls. A hash of the form selects a slot, which lists calls. */
struct seen_calls {
    struct seen_call *slot[SEEN_SLOTS];
    uint32_t next; /* the call that is replaced next, modulo SEEN_CALLS */
    struct seen_call call[SEEN_CALLS];
};

struct hw_queue {
    /* Read by hw_submit(). */
    submit_any *submit[HW_OP_COUNT];
    _Atomic uint32_t generation;       /* of the process; NO_GENERATION: see op_state.c */
    bool host_tensors;                 /* the device can access any host address */
    uint32_t cold_traits[HW_OP_COUNT]; /* bits of enum trait that take the cold path */
    struct hw_device *device;
    void *device_impl;
    void *impl;
    struct hw_plugin_ops ops;
    int32_t (*plan_launch)(void *queue, void *plan, const void *args); /* the plugin's */
    /* The arguments of the call that the plugin computes: kept here, not in a saved register. */
    const void *args;
    struct call_counts calls[HW_OP_COUNT];
    struct seen_calls seen;
    /* Not read by hw_submit(). */
    uint32_t flags;
    bool is_helper;             /* a helper, opened by another queue: it has no fallback */
    struct hw_graph *recording; /* NULL: not recording */
    struct hw_queue *helpers;   /* inner queues on other devices */
    struct buffer *idle; /* device scratch memory that can be reused in the queue's order */
    struct buffer *busy; /* freed when the queue has completed */
    uint64_t busy_bytes;
    struct pending_write *pending;
    struct shadow *shadow; /* route/shadow.c; NULL: no call is compared */
    /* route/cost.c */
    const char *pinned_why; /* why no call is routed elsewhere; NULL: calls may be routed */
    bool write_in_order;    /* queue_write_in_order() was called */
    bool in_graph;          /* a graph is being launched */
    uint64_t idle_at;       /* the number of calls when the queue was last idle */
    enum hw_status error;   /* of deferred work, kept until the next wait */
    char *error_text;
    struct hw_queue *next, *prev;
};

/* Returns HW_OK, HW_INVALID, HW_FORKED or HW_LOST. The first line of every function that uses a
 * queue. */
enum hw_status queue_ready(struct hw_queue *queue, const char *function);
void queue_destroy(struct hw_queue *queue);
/* Waits, then performs the pending writes. An error is returned, and kept for the next
 * hw_queue_wait(). */
enum hw_status queue_settle(struct hw_queue *queue);
/* The last step of every accepted call: waits if the queue is HW_QUEUE_SYNCHRONOUS. */
enum hw_status settle_synchronous(struct hw_queue *queue);
/* From now on, the queue writes small results to host memory in its own order, not in the next
 * wait: the application may submit work of its own to the vendor's handle of the queue. */
enum hw_status queue_write_in_order(struct hw_queue *queue);
/* Waits after an error, because work in flight still uses memory that is about to be freed. Keeps
 * the message of the error. */
void queue_drain(struct hw_queue *queue);
/* The helper queue on another device. Opens it if necessary. */
enum hw_status queue_helper(struct hw_queue *queue, struct hw_device *device,
                            struct hw_queue **helper);
/* Sets which traits take the cold path on this queue. */
void queue_set_cold_traits(struct hw_queue *queue);

/* The vendor's handle of the queue; `function` is for messages. */
enum hw_status queue_handle(struct hw_queue *queue, const char *function, const char *kind,
                            void **handle);

#endif
