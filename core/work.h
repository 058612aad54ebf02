/* SPDX-License-Identifier: MIT */
/* work.h - the side of the library that works: queues, buffers, events, graphs. */
#ifndef HW_WORK_H
#define HW_WORK_H

#include "core.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- operands.c: the op table, read back ---- */

enum role { ROLE_IN, ROLE_OPT_IN, ROLE_OUT, ROLE_OPT_OUT, ROLE_INOUT };

struct operand {
    const char *name;
    uint16_t offset; /* of the tensor in the op's struct */
    uint8_t role;
};

#define MAX_OPERANDS 8

struct op_desc {
    const char *name;
    uint32_t size; /* of its struct */
    uint32_t operand_count;
    struct operand operand[MAX_OPERANDS];
};
extern const struct op_desc op_descs[HW_OP_COUNT];

static inline bool role_reads(uint8_t role)
{
    return role == ROLE_IN || role == ROLE_OPT_IN || role == ROLE_INOUT;
}
static inline bool role_writes(uint8_t role)
{
    return role == ROLE_OUT || role == ROLE_OPT_OUT || role == ROLE_INOUT;
}
static inline struct hw_tensor *operand_of(void *args, const struct operand *operand)
{
    return (struct hw_tensor *)((char *)args + operand->offset);
}

/* Any op's struct, for a copy that can be changed. */
union any_op {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* ---- tensor.c ---- */

/* Bytes from the first element's first to the last one's last; false if they do not fit 63 bits.
 * The tensor's rank, extents and strides are in their ranges. */
bool tensor_span(const struct hw_tensor *tensor, uint64_t *bytes);
bool tensor_is_dense(const struct hw_tensor *tensor);   /* no gaps, in order */
bool tensor_is_rows(const struct hw_tensor *tensor);    /* innermost extent contiguous */
void tensor_pack_strides(struct hw_tensor *tensor);     /* makes it dense, at offset 0 */
int64_t tensor_elements(const struct hw_tensor *tensor);
/* "f16 [4,128]", for messages. */
#define TENSOR_TEXT 128
const char *tensor_text(const struct hw_tensor *tensor, char text[TENSOR_TEXT]);

/* ---- check.c: what ops.h promises, held against one call ---- */

/* What a call needs besides its plugin's function. */
enum cold {
    COLD_VIEW = 1,  /* an operand whose innermost extent is not contiguous */
    COLD_STAGE = 2, /* a host tensor that the device can not reach */
    COLD_QUEUE = 4, /* the queue records, is lost, or serves an older plugin */
    COLD_CHECK = 8  /* only the check is wanted */
};

struct check {
    const struct hw_device *device;
    const void *impl; /* the plugin's device; buffers of others are refused */
    bool host_tensors;
    const char *op;
    uint32_t cold;
    bool empty; /* there is nothing to write */
};

/* HW_INVALID names the field; nothing is touched. One row an op. */
extern enum hw_status (*const op_check[HW_OP_COUNT])(struct check *check, const void *op);

/* ---- ops.c ---- */

/* The plugin's function for a call that has passed its check, and what follows a refusal. */
enum hw_status run_checked(struct hw_queue *queue, uint32_t op, const void *args);

/* ---- queue.c ---- */

struct call_counts {
    uint64_t calls, fallbacks, fallback_bytes, staged_bytes, copied_views;
};

/* Something that waits for the queue to pass: a buffer to give back. */
struct deferred;

struct hw_queue {
    /* The hot path. */
    struct hw_device *device;
    void *impl;       /* the plugin's queue */
    void *device_impl;
    const struct hw_plugin_ops *ops;
    uint32_t cold; /* COLD_QUEUE, or 0 */
    bool host_tensors;
    uint32_t generation;
    struct call_counts counts[HW_OP_COUNT];
    /* The rest. */
    uint32_t flags;
    struct recording *recording; /* graph.c; NULL: ops run */
    struct deferred *deferred;
    uint32_t said[HW_OP_COUNT]; /* dtypes whose fallback has been logged */
    bool old_plugin;            /* some op struct is longer than the plugin knows */
    bool hidden;                /* the library's own; not in hw_explain() */
    struct hw_queue *next;
};

enum hw_status queue_open(struct hw_device *device, const struct hw_queue_options *options,
                          bool hidden, struct hw_queue **out);
/* The library's own queue of a device, for work that no queue of the caller's can do. The caller
 * of lend holds it until return. */
enum hw_status service_lend(struct hw_device *device, struct hw_queue **queue);
void service_return(struct hw_device *device);

/* Remembers HW_LOST; passes the status on. */
enum hw_status queue_result(struct hw_queue *queue, int32_t status);

/* ---- route.c: the cold path ---- */

enum hw_status route(struct hw_queue *queue, uint32_t op, const void *args, uint32_t cold);
/* The plugin answered `status` before touching anything. */
enum hw_status route_refused(struct hw_queue *queue, uint32_t op, const void *args,
                             int32_t status);

/* ---- transfer.c ---- */

/* `tensor`, in host memory: a view of what is there, or of a copy of its span in `*copy`, to be
 * freed. The queue is of the tensor's device and has been waited for. */
enum hw_status span_to_host(struct hw_queue *queue, const struct hw_tensor *tensor, bool read,
                            struct hw_tensor *host, void **copy);
/* Writes the span back. */
enum hw_status span_from_host(struct hw_queue *queue, const struct hw_tensor *tensor,
                              const struct hw_tensor *host);
enum hw_status transfer(struct hw_queue *queue, const struct hw_transfer *transfer);

/* ---- graph.c ---- */

enum hw_status record_op(struct hw_queue *queue, uint32_t op, const void *args, uint32_t cold);
void recording_free(struct recording *recording);

/* ---- buffer.c ---- */

struct buffer {
    struct hw_buffer base; /* first: what plugins see */
    struct hw_device *device;
    struct block *block; /* pool.c; NULL: imported */
    struct buffer *next, *previous;
};

/* ---- pool.c ---- */

enum hw_status pool_take(struct pool *pool, uint64_t bytes, uint32_t flags,
                         struct hw_buffer *buffer, struct block **block);
void pool_give(struct pool *pool, struct block *block);

#endif
