/* SPDX-License-Identifier: MIT */
/* exec.h - the executing half of the library: what tensor.c, operand.c, ops.c, queue.c,
 * route.c, stage.c, fallback.c, transfer.c, copy.c, pool.c, buffer.c, event.c, graph.c and
 * extension.c share.
 *
 *   hw_submit  ops.c       check the op, then one call to the plugin
 *   route      route.c     the cold path: operands that the plugin can not take as they are
 *   stage_in   stage.c     host tensors to the device, and back
 *   fall_back  fallback.c  the op is computed by another device
 *   queue_move transfer.c  bytes from one place to another */
#ifndef HW_EXEC_H
#define HW_EXEC_H

#include "core.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- the op table as data ---- */

enum role { ROLE_IN, ROLE_OPT_IN, ROLE_WEIGHT, ROLE_OUT, ROLE_OPT_OUT, ROLE_INOUT };

struct operand {
    const char *name;
    uint32_t offset; /* of the tensor in the op's struct */
    enum role role;
};

#define MAX_OPERANDS 8

/* Room for any op's struct. */
union any_op {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* The same for a plugin that knows longer ones; what the library does not know is zero. */
union plugin_op {
    union any_op known;
    unsigned char bytes[MAX_OP_BYTES];
};

/* OPERAND_silu_x and so on: an operand's number within its op. */
#define T(op, field, role) OPERAND_##op##_##field,
#define X(NAME, name)      enum { HW_OPERANDS_##NAME(T) OPERANDS_##name };
HW_OPS(X)
#undef X
#undef T

/* What a check finds out besides the answer: what about the operands is not simple. */
enum odd {
    ODD_ALWAYS = 1,  /* set in every look: a queue that minds it minds every call */
    ODD_HOST = 2,    /* an operand lies in host memory */
    ODD_STRIDED = 4, /* an operand's innermost extent is not contiguous */
    ODD_EMPTY = 8    /* the outputs are empty: there is nothing to do */
};

/* Where an operand's bytes lie: host addresses, or offsets in a buffer that the host can
 * not see. Empty operands lie nowhere. */
struct extent_of_bytes {
    const void *space; /* NULL: the host's */
    uint64_t begin, end;
};

/* One check under way. */
struct look {
    struct hw_device *device; /* whose buffers the operands may lie in */
    void *impl;
    uint32_t op;
    uint32_t odd;
    uint32_t wrong; /* the operand that does not fit, and the dtypes that would */
    uint32_t dtypes;
    struct extent_of_bytes bytes[MAX_OPERANDS];
};

struct op_row {
    uint32_t size; /* of its struct */
    uint32_t operand_count;
    const struct operand *operands;
    /* Check and call: what hw_submit() does with a struct of the right size. */
    enum hw_status (*submit)(struct hw_queue *queue, const void *args);
    /* The plugin's function. */
    int32_t (*call)(struct hw_queue *queue, const void *args);
};
extern const struct op_row op_rows[HW_OP_COUNT];

/* check.c. Pure: HW_INVALID names the field. */
typedef enum hw_status check_fn(const void *args, struct look *look);
extern check_fn *const op_checks[HW_OP_COUNT];

static inline bool role_reads(enum role role)
{
    return role != ROLE_OUT && role != ROLE_OPT_OUT;
}

static inline bool role_writes(enum role role)
{
    return role >= ROLE_OUT;
}

static inline bool role_optional(enum role role)
{
    return role == ROLE_OPT_IN || role == ROLE_OPT_OUT;
}

static inline struct hw_tensor *operand_in(void *args, const struct operand *operand)
{
    return (struct hw_tensor *)(void *)((char *)args + operand->offset);
}

static inline const struct hw_tensor *operand_at(const void *args,
                                                 const struct operand *operand)
{
    return (const struct hw_tensor *)(const void *)((const char *)args + operand->offset);
}

/* Brings a struct of `size` bytes to this library's size: missing fields are zero, and
 * bytes that are not known must be. Answers `args` itself or `copy`, NULL with a message in
 * *status. */
const void *args_of_size(uint32_t op, const void *args, size_t size, union any_op *copy,
                         enum hw_status *status);
/* Whether the plugin has a function for the op. */
bool plugin_has(const struct plugin *plugin, uint32_t op);
/* Whether it has, and knows all of the struct that is not zero; HW_UNSUPPORTED says what is
 * missing. */
enum hw_status args_known(const struct plugin *plugin, uint32_t op, const void *args);
/* Bytes of the op's struct, as the longer of plugin and library knows it; and the struct with as
 * many: `args` itself, or `longer`. Whatever calls the plugin with one goes through these. */
size_t plugin_args_size(const struct plugin *plugin, uint32_t op);
const void *plugin_args(const struct plugin *plugin, uint32_t op, const void *args,
                        union plugin_op *longer);
/* The plugin's function. */
int32_t plugin_call(struct hw_queue *queue, uint32_t op, const void *args);
/* Whether the device, awake, takes this struct as it is; HW_UNSUPPORTED says why not. */
enum hw_status plugin_supports(struct hw_device *device, uint32_t op, const void *args);

/* ---- operand.c ---- */

#define FAULT_SIZE 256
/* What can not be about one tensor, whatever the op: true, with the words in `why`.
 * `writes`: it is an output, in which no two elements may lie in one place. */
bool tensor_fault(const struct hw_tensor *tensor, bool writes, char why[FAULT_SIZE]);

/* ---- tensor.c ---- */

#define DESCRIBE_SIZE 128
/* "f32 [4, 64]", for messages. */
const char *describe(const struct hw_tensor *tensor, char text[DESCRIBE_SIZE]);
/* The names of a set of dtypes, "f32, f16 or bf16". */
const char *describe_dtypes(uint32_t dtypes, char text[DESCRIBE_SIZE]);
bool tensor_empty(const struct hw_tensor *tensor);
/* Whether all elements follow each other, in order. */
bool tensor_dense(const struct hw_tensor *tensor);
bool same_extents(const struct hw_tensor *a, const struct hw_tensor *b);
/* Sets the strides of a contiguous tensor, and answers its bytes; false if too large. With
 * `like`, an extent that `like` repeats (stride 0) stays repeated, the innermost excepted.
 */
bool make_dense(struct hw_tensor *tensor, const struct hw_tensor *like, uint64_t *bytes);

/* ---- pool.c ---- */

struct buffer;

/* A piece of a chunk; `offset` and `length` are multiples of the device's buffer_alignment. */
struct block {
    struct chunk *chunk;
    struct block *before, *after; /* in the chunk, by address */
    struct block *next_free, *prev_free;
    uint64_t offset, length;
    bool used;
};
enum hw_status pool_take(struct pool *pool, uint64_t bytes, uint32_t flags,
                         struct block **block);
void pool_give(struct pool *pool, struct block *block);
/* Drops the buffer once its mark has passed, at the latest when memory or numbers are asked
 * for. */
void pool_give_after(struct pool *pool, struct buffer *buffer);
/* The queue has passed: drops what was freed in its order. */
void pool_passed(struct pool *pool, const struct hw_queue *queue);
/* What the plugin answered for the whole of the block's chunk. */
const struct hw_buffer *block_memory(const struct block *block);

/* ---- buffer.c ---- */

/* What a struct hw_buffer * of this library's points to. */
struct buffer {
    struct hw_buffer base;
    uint64_t place; /* of its first byte: the host's address, or by the plugin's handle */
    struct hw_device *owner;
    struct block *block;        /* NULL: imported */
    struct hw_tensor packed;    /* what hw_tensor_pack() made of it; layout 0: nothing */
    struct hw_queue *after;     /* freed in this queue's order: see pool_give_after() */
    void *mark;                 /* the plugin's event behind its last use there */
    struct buffer *next, *prev; /* the context's, or a queue's */
};

static inline struct buffer *buffer_of(const struct hw_buffer *base)
{
    return (struct buffer *)(void *)(uintptr_t)base;
}

/* A buffer that the context does not list. */
enum hw_status buffer_make(struct hw_device *device, uint64_t bytes, uint32_t flags,
                           struct buffer **buffer);
void buffer_drop(struct buffer *buffer);
void buffer_list(struct buffer *buffer);
void buffer_unlist(struct buffer *buffer);

/* ---- queue.c ---- */

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

/* A host tensor that the queue has yet to write. */
struct owed {
    struct owed *next;
    uint64_t begin, end; /* addresses */
    struct hw_tensor to; /* the host tensor */
    void *from; /* its bytes, dense, once the queue has passed; NULL: none to copy */
};

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
    bool host_tensors;           /* the device reads and writes any host address */
    uint32_t minds[HW_OP_COUNT]; /* bits of enum odd that take the cold path */
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
    struct owed *owed;
    enum hw_status error; /* of deferred work, until the next wait */
    char *error_text;
    struct hw_queue *next, *prev;
};

/* HW_OK, or HW_FORKED, HW_LOST. */
enum hw_status device_usable(struct hw_device *device);
/* The same, or HW_INVALID: the first line of every entry with a queue. */
enum hw_status queue_ready(struct hw_queue *queue, const char *function);
enum hw_status queue_make(struct hw_device *device, const struct hw_queue_desc *desc,
                          struct hw_queue **queue);
void queue_destroy(struct hw_queue *queue);
/* Waits and pays what is owed. An error is kept for the next hw_queue_wait(), and answered.
 */
enum hw_status queue_settle(struct hw_queue *queue);
/* The last step of every call that was accepted: a HW_QUEUE_SYNCHRONOUS queue has passed it when it
 * returns. */
enum hw_status settle_synchronous(struct hw_queue *queue);
/* The same after an error, whose words stay: what is in flight still uses memory that is to go. */
void queue_drain(struct hw_queue *queue);
/* What the plugin answered: notes that a device is lost. */
enum hw_status answered(struct hw_device *device, int32_t status);
/* The inner queue on another device. */
enum hw_status queue_helper(struct hw_queue *queue, struct hw_device *device,
                            struct hw_queue **helper);
/* Which operands take the cold path on this queue. */
void queue_set_minds(struct hw_queue *queue);
/* Position in the context's list. */
uint32_t device_position(const struct hw_device *device);

/* Scratch: device memory that the queue uses in its own order, or pinned host memory. */
enum hw_status scratch_take(struct hw_queue *queue, uint64_t bytes, uint32_t flags,
                            struct buffer **buffer);
void scratch_give(struct hw_queue *queue, struct buffer *buffer);
/* Freed when the queue has passed. */
void queue_free_later(struct hw_queue *queue, struct buffer *buffer);
/* Host memory until the queue has passed, all of `*pinned` if that is not NULL; NULL: none. */
void *scratch_host(struct hw_queue *queue, uint64_t bytes, struct hw_buffer **pinned);

/* ---- route.c, stage.c, fallback.c ---- */

/* Whether the device, awake, computes the op if its views are copied and its host tensors
 * staged. Nothing behind their addresses is looked at. `as`: the same op, with flags for those
 * views that need no copy then. HW_UNSUPPORTED says why not. */
enum hw_status device_computes(struct hw_device *device, uint32_t op, const void *args,
                               union any_op *as);
/* What a check found odd and the queue minds. */
enum hw_status route(struct hw_queue *queue, uint32_t op, const void *args, uint32_t odd);
/* Between a host tensor and the device, for an op that counts it. Host memory is borrowed
 * until the queue has passed; it is written by the next wait at the latest. */
enum hw_status stage_in(struct hw_queue *queue, uint32_t op, const struct hw_tensor *to,
                        const struct hw_tensor *host);
enum hw_status stage_out(struct hw_queue *queue, uint32_t op, const struct hw_tensor *host,
                         const struct hw_tensor *from);
/* The plugin answered `status`, with its words in the message. */
enum hw_status submit_failed(struct hw_queue *queue, uint32_t op, const void *args,
                             int32_t status);
enum hw_status fall_back(struct hw_queue *queue, uint32_t op, const void *args,
                         enum hw_status status);
/* HW_OK if fall_back() will ask another device; else its answer. */
enum hw_status may_fall_back(const struct hw_queue *queue, uint32_t op, const void *args,
                             enum hw_status status);
void fallback_notes_free(struct hw_context *context);
void explain_fallbacks(struct json *json, struct hw_context *context);

/* ---- transfer.c ---- */

/* How many transfers of the plugin it takes to move one tensor to another of the same extents
 * and dtype. */
uint64_t move_count(const struct hw_tensor *a, const struct hw_tensor *b);
/* Between host addresses, at once: dst = src, bit for bit. */
void host_move(const struct hw_tensor *dst, const struct hw_tensor *src);
/* In the queue's order, by the plugin's transfers: places are the host or this plugin's
 * buffers. */
enum hw_status queue_move(struct hw_queue *queue, const struct hw_tensor *dst,
                          const struct hw_tensor *src);
/* The tensor seen through its buffer's host address. */
bool host_view(const struct hw_tensor *tensor, struct hw_tensor *view);

/* ---- graph.c ---- */

enum hw_status graph_add(struct hw_queue *queue, uint32_t op, const void *args,
                         uint32_t odd);
void graph_drop(struct hw_graph *graph);
#endif
