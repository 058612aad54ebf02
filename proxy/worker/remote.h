/* SPDX-License-Identifier: MIT */
/* remote.h - the handles and the table of a plugin in a worker process. The library calls them like
 * the table of any other plugin. */
#ifndef WORKER_REMOTE_H
#define WORKER_REMOTE_H

#include "worker/worker.h"

/* Fills the empty table with functions that call the worker. `ops`: bit 1 << op for each op that
 * the plugin has. */
void remote_fill(struct worker *worker, struct hw_plugin *table, uint64_t ops);

/* Each handle but the instance begins with its worker; the instance is the worker. */
static inline const struct worker *remote_worker(const void *handle)
{
    return *(struct worker *const *)handle;
}

struct remote_device {
    struct worker *worker;
    uint32_t index;
    uint32_t alignment;  /* of its buffers */
    _Atomic bool shares; /* its memory is host memory; false once sharing has failed */
};

enum { REMOTE_FORMS = 1024 }; /* a power of two */

struct remote_queue {
    struct worker *worker;
    struct remote_device *device;
    struct channel *channel;
    int32_t error; /* an error of earlier work, kept for the next wait */
    char error_text[WIRE_TEXT];
    struct remote_memory *staging; /* NULL: not yet needed */
    uint64_t staged;               /* bytes of `staging` that are in use */
    uint64_t forms[REMOTE_FORMS];  /* hashes of the forms that the plugin has accepted */
};

/* hw_buffer.impl points to this. */
struct remote_memory {
    struct worker *worker;
    uint32_t id, device;
    uint64_t bytes;
    void *address; /* in this process; NULL: not visible */
    size_t mapped;
    struct remote_memory *next, **link; /* in worker.shared, if `address` is set */
};

/* ---- queue.c ---- */

int32_t remote_queue_open(void *device, const struct hw_queue_desc *desc, void **queue);
void remote_queue_close(void *of);
int32_t remote_queue_wait(void *of);
/* Waits, and keeps an error for remote_queue_wait(). Returns HW_OK or HW_LOST. */
int32_t remote_settle(struct remote_queue *queue);
/* Begins a call and returns the place for its arguments. NULL: the worker has ended, and *status
 * is HW_LOST. */
void *remote_begin(struct remote_queue *queue, enum wire_call call, uint32_t bytes,
                   int32_t *status);
/* Gives the call to the worker without waiting. */
void remote_push(struct remote_queue *queue);
/* Gives the call to the worker, and waits for a reply with `bytes` bytes of data. */
int32_t remote_answer(struct remote_queue *queue, void *data, uint32_t bytes);

/* ---- memory.c ---- */

int32_t remote_alloc(void *of, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer);
void remote_free(void *device, struct hw_buffer *buffer);
int32_t remote_transfer(void *of, const struct hw_transfer *transfer);
void remote_memory_free(struct remote_memory *memory);
struct wire_view remote_view(const struct hw_buffer *buffer);

/* ---- call.c ---- */

void remote_fill_ops(struct hw_plugin_ops *ops, uint64_t which);
int32_t remote_supports(void *of, uint32_t op, const void *args, char *why, size_t why_size,
                        uint64_t *scratch);
int32_t remote_kernel_info(void *of, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info);
int32_t remote_pack_size(void *of, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout);
int32_t remote_pack(void *of, const struct hw_tensor *dst, const struct hw_tensor *src);

/* Begins a call that is an op or a node of a graph. NULL as for remote_begin(). */
void *remote_begin_op(struct remote_queue *queue, enum wire_call call, uint32_t op,
                      const void *args, int32_t *status);

/* ---- graph.c ---- */

int32_t remote_graph_build(void *of, const struct hw_node *nodes, uint32_t count,
                           void **graph);
int32_t remote_graph_launch(void *of, void *launched);
void remote_graph_destroy(void *of);

/* ---- event.c ---- */

int32_t remote_event_create(void *of, uint32_t flags, void **event);
void remote_event_destroy(void *of);
int32_t remote_event_record(void *of, void *queue);
int32_t remote_event_wait(void *queue, void *of);
int32_t remote_event_sync(void *of);
int32_t remote_event_query(void *of);
int32_t remote_event_elapsed(void *start, void *end, double *ms);

/* ---- refused.c ---- */

/* Fills the slots that cannot work across processes: they return HW_UNSUPPORTED and say why. */
void remote_fill_refused(struct hw_plugin *table);

#endif
