/* SPDX-License-Identifier: MIT */
/* discrete.c - a complete small plugin, to read and to test with: two devices whose memory
 * is their own. It is honest about what it is: the device is called "Test device with
 * separate memory" and is chosen after everything else.
 *
 * It has what makes a discrete GPU a discrete GPU, in the smallest form:
 * - Memory is a handle. Nobody outside this file gets an address of it, so data comes and
 * goes by transfers only, and the host has to stage whatever lies elsewhere.
 * - A queue is a thread. Submitting appends a job and returns; the work happens later, so a
 *   missing wait or a scratch buffer given back too early shows.
 * - It computes little: silu, add, matmul and copy in f32. The rest is somebody else's.
 * - Things go wrong: extension ops make a queue slow, fail later, or lose the device.
 *
 * From top to bottom: memory, queues, ops, events, graphs, packed weights, extension ops,
 * the table. */
#define _POSIX_C_SOURCE 200809L
#include <hw/plugin.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define DEVICES      2
#define MEMORY_BYTES (UINT64_C(64) << 20)
#define FAR_MOST     (UINT64_C(48) << 20) /* the second one's buffers: bytes, and alignment */
#define ALIGNMENT    512

/* ---- what open(), device_open() and queue_open() return ---- */

struct instance {
    const struct hw_host *host;
};

struct device {
    struct instance *instance;
    int32_t index;
    _Atomic uint64_t used;
    _Atomic bool lost;
};

struct queue {
    struct device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, *last; /* the thread takes the first */
    bool idle, closing;
    int32_t error; /* the first since the last wait */
    char error_text[128];
};

static int32_t lost(const struct device *device)
{
    return hw_fail(device->instance->host, HW_LOST, "the test device was lost on request");
}

/* ---- memory ---- */

/* What hw_buffer.impl points to, and nobody else looks into. */
struct memory {
    _Alignas(ALIGNMENT) uint64_t bytes;
    _Alignas(ALIGNMENT) unsigned char cells[];
};

static int32_t buffer_alloc(void *self, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer)
{
    struct device *device = self;
    const struct hw_host *host = device->instance->host;
    if (device->lost)
        return lost(device);
    if (atomic_fetch_add(&device->used, bytes) + bytes > MEMORY_BYTES) {
        atomic_fetch_sub(&device->used, bytes);
        return hw_fail(host, HW_NO_MEMORY, "%llu of %llu bytes are in use",
                       (unsigned long long)device->used, (unsigned long long)MEMORY_BYTES);
    }
    const uint64_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct memory *memory = aligned_alloc(ALIGNMENT, sizeof *memory + (size_t)whole);
    if (!memory) {
        atomic_fetch_sub(&device->used, bytes);
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    }
    memory->bytes = bytes;
    if (flags & HW_BUFFER_ZEROED)
        memset(memory->cells, 0, bytes);
    buffer->impl = memory;
    /* Pinned memory, too, is asked for as visible. */
    buffer->host = flags & HW_BUFFER_HOST_VISIBLE ? memory->cells : NULL;
    buffer->flags = flags;
    return HW_OK;
}

static void buffer_free(void *self, struct hw_buffer *buffer)
{
    struct device *device = self;
    struct memory *memory = buffer->impl;
    atomic_fetch_sub(&device->used, memory->bytes);
    free(memory);
}

/* The one place where a handle becomes an address: `offset` bytes into a buffer, which
 * itself is a part of the allocation. */
static void *cells(const struct hw_buffer *buffer, uint64_t offset)
{
    struct memory *memory = buffer->impl;
    return memory->cells + buffer->offset + offset;
}

/* ---- queues ---- */

/* Work that waits in a queue. `run` answers a status, which sticks to the queue. */
struct job {
    struct job *next;
    int32_t (*run)(struct queue *queue, struct job *job);
    bool always; /* on a lost device, too */
    union {
#define X(NAME, name) struct hw_##name name;
        HW_OPS(X)
#undef X
        struct hw_transfer transfer;
        struct mark *mark;
        struct graph *graph;
        int64_t number;
    } u;
    /* Buffers are values, too: the host may free its struct as soon as it has waited, not
     * before, but a copy costs nothing and asks no questions. */
    struct hw_buffer buffers[6];
};

static void *work(void *self)
{
    struct queue *queue = self;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (!queue->first && !queue->closing) {
            queue->idle = true;
            pthread_cond_broadcast(&queue->changed);
            pthread_cond_wait(&queue->changed, &queue->lock);
        }
        struct job *job = queue->first;
        if (!job)
            break;
        queue->first = job->next;
        pthread_mutex_unlock(&queue->lock);
        const bool runs = job->always || !queue->device->lost;
        const int32_t status = runs ? job->run(queue, job) : HW_LOST;
        free(job);
        pthread_mutex_lock(&queue->lock);
        if (status && !queue->error)
            queue->error = status;
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static int32_t queue_open(void *self, const struct hw_queue_desc *desc, void **out)
{
    struct device *device = self;
    const struct hw_host *host = device->instance->host;
    (void)desc; /* one kernel for each op, and no other way to run it */
    if (device->lost)
        return lost(device);
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    queue->device = device;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (pthread_create(&queue->thread, NULL, work, queue) != 0) {
        free(queue);
        return hw_fail(host, HW_DRIVER, "no thread for a queue");
    }
    *out = queue;
    return HW_OK;
}

static int32_t queue_wait(void *self)
{
    struct queue *queue = self;
    pthread_mutex_lock(&queue->lock);
    while (queue->first || !queue->idle)
        pthread_cond_wait(&queue->changed, &queue->lock);
    int32_t error = queue->error;
    queue->error = HW_OK;
    pthread_mutex_unlock(&queue->lock);
    if (queue->device->lost)
        return lost(queue->device);
    if (error)
        return hw_fail(queue->device->instance->host, error, "%s", queue->error_text);
    return HW_OK;
}

static void queue_close(void *self)
{
    struct queue *queue = self;
    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static struct job *job_new(struct queue *queue,
                           int32_t (*run)(struct queue *, struct job *))
{
    struct job *job = queue->device->lost ? NULL : calloc(1, sizeof *job);
    if (job)
        job->run = run;
    return job;
}

/* Why there is no job. */
static int32_t no_job(const struct queue *queue)
{
    if (queue->device->lost)
        return lost(queue->device);
    return hw_fail(queue->device->instance->host, HW_NO_MEMORY, "out of memory");
}

static int32_t submit(struct queue *queue, struct job *job)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->first)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    queue->idle = false;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return HW_OK;
}

/* ---- transfers ---- */

static int32_t run_transfer(struct queue *queue, struct job *job)
{
    const struct hw_transfer *t = &job->u.transfer;
    void *dst = t->dst ? cells(t->dst, t->dst_offset) : t->dst_host;
    const void *src = t->src ? cells(t->src, t->src_offset) : t->src_host;
    (void)queue;
    hw_transfer_host(t, dst, src);
    return HW_OK;
}

static int32_t transfer(void *self, const struct hw_transfer *t)
{
    struct queue *queue = self;
    const struct hw_host *host = queue->device->instance->host;
    if ((t->dst && t->dst->device != queue->device) ||
        (t->src && t->src->device != queue->device))
        return hw_fail(host, HW_UNSUPPORTED, "no way from one test device to the other");
    struct job *job = job_new(queue, run_transfer);
    if (!job)
        return no_job(queue);
    job->u.transfer = *t;
    if (t->dst)
        job->u.transfer.dst = memcpy(&job->buffers[0], t->dst, sizeof *t->dst);
    if (t->src)
        job->u.transfer.src = memcpy(&job->buffers[1], t->src, sizeof *t->src);
    return submit(queue, job);
}

/* ---- ops ---- */

/* An operand's element at `index`; an axis of another's that is missing here, or 1,
 * repeats. */
static unsigned char *element(const struct hw_tensor *t, const int64_t index[HW_MAX_RANK],
                              int rank)
{
    uint64_t at = t->offset;
    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] > 1)
            at += (uint64_t)(index[i + rank - t->rank] * t->stride[i]);
    return cells(t->buffer, at);
}

/* The next index; false past the last. */
static bool advance(const struct hw_tensor *t, int64_t index[HW_MAX_RANK])
{
    for (int i = t->rank - 1; i >= 0; i--) {
        if (++index[i] < t->extent[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static float *number(const struct hw_tensor *t, const int64_t index[HW_MAX_RANK], int rank)
{
    return (float *)(void *)element(t, index, rank);
}

static int32_t run_silu(struct queue *queue, struct job *job)
{
    const struct hw_silu *op = &job->u.silu;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do {
        const float x = *number(&op->x, index, op->x.rank);
        *number(&op->y, index, op->y.rank) = x / (1.0f + expf(-x));
    } while (advance(&op->y, index));
    return HW_OK;
}

static int32_t run_add(struct queue *queue, struct job *job)
{
    const struct hw_add *op = &job->u.add;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do
        *number(&op->y, index, op->y.rank) = *number(&op->a, index, op->y.rank) +
                                             *number(&op->b, index, op->y.rank);
    while (advance(&op->y, index));
    return HW_OK;
}

/* The layout of packed weights: a matrix without gaps, whatever its strides say. */
#define LAYOUT_DENSE 1

static void unpack(struct hw_tensor *t)
{
    t->stride[0] = t->extent[1] * (int64_t)sizeof(float);
    t->stride[1] = sizeof(float);
}

/* Matrices; b may be packed. */
static int32_t run_matmul(struct queue *queue, struct job *job)
{
    struct hw_matmul *op = &job->u.matmul;
    const int ta = op->transpose_a != 0, tb = op->transpose_b != 0;
    int64_t c[HW_MAX_RANK] = { 0 };
    (void)queue;
    if (op->b.layout == LAYOUT_DENSE)
        unpack(&op->b);
    do {
        float sum = 0.0f;
        for (int64_t k = 0; k < op->a.extent[1 - ta]; k++) {
            const int64_t a[HW_MAX_RANK] = { ta ? k : c[0], ta ? c[0] : k };
            const int64_t b[HW_MAX_RANK] = { tb ? c[1] : k, tb ? k : c[1] };
            sum += *number(&op->a, a, 2) * *number(&op->b, b, 2);
        }
        *number(&op->c, c, 2) = sum;
    } while (advance(&op->c, c));
    return HW_OK;
}

static int32_t run_copy(struct queue *queue, struct job *job)
{
    const struct hw_copy *op = &job->u.copy;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do
        memcpy(element(&op->dst, index, op->dst.rank),
               element(&op->src, index, op->src.rank),
               (size_t)hw_dtype_bytes(op->src.dtype));
    while (advance(&op->dst, index));
    return HW_OK;
}

/* Why an op can not be computed, or NULL. Asked by supports(), and by every op before it
 * touches anything. */
static const char *refusal(uint32_t op, const void *args)
{
    switch (op) {
    case HW_OP_SILU:
        return ((const struct hw_silu *)args)->x.dtype == HW_F32 ? NULL : "silu is for f32";
    case HW_OP_ADD:
        return ((const struct hw_add *)args)->y.dtype == HW_F32 ? NULL : "add is for f32";
    case HW_OP_MATMUL: {
        const struct hw_matmul *m = args;
        if (m->a.dtype != HW_F32 || m->b.dtype != HW_F32 || m->c.dtype != HW_F32)
            return "matmul is for f32";
        return m->a.rank + m->b.rank + m->c.rank == 6 && !m->bias.dtype
                   ? NULL
                   : "matmul is for two matrices without bias";
    }
    case HW_OP_COPY: {
        const struct hw_copy *copy = args;
        if (copy->src.dtype != copy->dst.dtype)
            return "copy converts nothing";
        return hw_dtype_block(copy->src.dtype) == 1 ? NULL : "copy moves no blocks";
    }
    default:
        return "it has no kernel for this op";
    }
}

static int32_t supports(void *self, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    (void)self;
    const char *words = refusal(op, args);
    *scratch = 0;
    if (words)
        snprintf(why, why_size, "%s", words);
    return words ? HW_UNSUPPORTED : HW_OK;
}

/* The struct and its buffers are copied: they are the caller's again when this returns. */
#define OP(NAME, name, OPERANDS)                                                           \
    static int32_t name(void *device, void *self, const struct hw_##name *op)              \
    {                                                                                      \
        struct queue *queue = self;                                                        \
        const char *words = refusal(HW_OP_##NAME, op);                                     \
        int n = 0;                                                                         \
        (void)device;                                                                      \
        if (words)                                                                         \
            return hw_fail(queue->device->instance->host, HW_UNSUPPORTED, "%s", words);    \
        struct job *job = job_new(queue, run_##name);                                      \
        if (!job)                                                                          \
            return no_job(queue);                                                          \
        job->u.name = *op;                                                                 \
        OPERANDS(KEEP)                                                                     \
        return submit(queue, job);                                                         \
    }
#define KEEP(name, field, role)                                                            \
    if (op->field.buffer)                                                                  \
        job->u.name.field.buffer = memcpy(&job->buffers[n++], op->field.buffer,            \
                                          sizeof job->buffers[0]);
OP(MATMUL, matmul, HW_OPERANDS_MATMUL)
OP(SILU, silu, HW_OPERANDS_SILU)
OP(ADD, add, HW_OPERANDS_ADD)
OP(COPY, copy, HW_OPERANDS_COPY)
#undef KEEP
#undef OP

static int32_t kernel_info(void *self, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info)
{
    (void)self;
    if (index > 0 ||
        (op != HW_OP_SILU && op != HW_OP_ADD && op != HW_OP_MATMUL && op != HW_OP_COPY))
        return HW_END;
    const struct hw_kernel_info row = {
        .size = sizeof row, .eligible = 1, .name = "plain", .needs = "f32"
    };
    hw_answer(info, &row);
    return HW_OK;
}

/* ---- events: the event is its last record, and an earlier one goes on without it ---- */

struct callback {
    struct callback *next;
    void (*fn)(void *user);
    void *user;
};

/* One record of an event. Held by the event, while it is the last; by the queue that it is
 * to pass on; by the queues that wait for it. */
struct mark {
    _Atomic uint32_t holders;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool passed;
    struct timespec when;
    struct callback *callbacks;
};

struct event {
    struct device *device;
    pthread_mutex_t lock;
    struct mark *last; /* NULL: never recorded */
};

static int32_t event_create(void *device, uint32_t flags, void **out)
{
    struct event *event = calloc(1, sizeof *event);
    (void)flags; /* a time costs nothing here */
    if (!event)
        return hw_fail(((struct device *)device)->instance->host, HW_NO_MEMORY,
                       "out of memory");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return HW_OK;
}

/* The last record, or NULL. */
static struct mark *mark_hold(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    struct mark *mark = event->last;
    if (mark)
        atomic_fetch_add(&mark->holders, 1);
    pthread_mutex_unlock(&event->lock);
    return mark;
}

static void mark_drop(struct mark *mark)
{
    if (!mark || atomic_fetch_sub(&mark->holders, 1) > 1)
        return;
    pthread_cond_destroy(&mark->changed);
    pthread_mutex_destroy(&mark->lock);
    free(mark);
}

static void mark_wait(struct mark *mark)
{
    if (!mark)
        return;
    pthread_mutex_lock(&mark->lock);
    while (!mark->passed) /* also on a lost device: records always run */
        pthread_cond_wait(&mark->changed, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
}

static int32_t event_sync(void *self)
{
    struct event *event = self;
    mark_wait(mark_hold(event));
    return event->device->lost ? lost(event->device) : HW_OK;
}

/* What waits for it and what it calls goes on without it. */
static void event_destroy(void *self)
{
    struct event *event = self;
    mark_drop(event->last);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* Callbacks come before the event can be seen as passed. */
static int32_t run_record(struct queue *queue, struct job *job)
{
    struct mark *mark = job->u.mark;
    (void)queue;
    pthread_mutex_lock(&mark->lock);
    while (mark->callbacks) {
        struct callback *callback = mark->callbacks;
        mark->callbacks = callback->next;
        pthread_mutex_unlock(&mark->lock);
        callback->fn(callback->user);
        free(callback);
        pthread_mutex_lock(&mark->lock);
    }
    mark->passed = true;
    clock_gettime(CLOCK_MONOTONIC, &mark->when);
    pthread_cond_broadcast(&mark->changed);
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
    return HW_OK;
}

static int32_t event_record(void *self, void *queue_self)
{
    struct event *event = self;
    struct queue *queue = queue_self;
    struct job *job = job_new(queue, run_record);
    struct mark *mark = job ? calloc(1, sizeof *mark) : NULL;
    if (!mark) {
        free(job);
        return no_job(queue);
    }
    mark->holders = 2; /* the event and the job */
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->changed, NULL);
    pthread_mutex_lock(&event->lock);
    struct mark *before = event->last;
    event->last = mark;
    pthread_mutex_unlock(&event->lock);
    mark_drop(before);
    job->u.mark = mark;
    job->always = true;
    return submit(queue, job);
}

static int32_t run_wait(struct queue *queue, struct job *job)
{
    (void)queue;
    mark_wait(job->u.mark);
    return HW_OK;
}

/* The second device can wait for the first, but not the first for the second. */
static int32_t event_wait(void *queue_self, void *self)
{
    struct queue *queue = queue_self;
    if (queue->device->index < ((struct event *)self)->device->index)
        return hw_fail(queue->device->instance->host, HW_UNSUPPORTED,
                       "no way from the second test device to the first");
    struct job *job = job_new(queue, run_wait);
    if (!job)
        return no_job(queue);
    job->u.mark = mark_hold(self);
    job->always = true; /* it holds something */
    return submit(queue, job);
}

static int32_t event_query(void *self)
{
    struct mark *mark = mark_hold(self);
    if (!mark)
        return HW_OK;
    pthread_mutex_lock(&mark->lock);
    const bool passed = mark->passed;
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
    return passed ? HW_OK : HW_NOT_READY;
}

static int32_t event_callback(void *self, void (*fn)(void *user), void *user)
{
    struct event *event = self;
    struct mark *mark = mark_hold(event);
    struct callback *callback = malloc(sizeof *callback);
    if (!callback) {
        mark_drop(mark);
        return hw_fail(event->device->instance->host, HW_NO_MEMORY, "out of memory");
    }
    *callback = (struct callback){ .fn = fn, .user = user };
    if (mark) {
        pthread_mutex_lock(&mark->lock);
        if (!mark->passed) {
            struct callback **end = &mark->callbacks;
            while (*end)
                end = &(*end)->next;
            *end = callback;
            callback = NULL;
        }
        pthread_mutex_unlock(&mark->lock);
        mark_drop(mark);
    }
    if (callback)
        fn(user); /* it has passed */
    free(callback);
    return HW_OK;
}

/* When it passed; false: not yet. */
static bool passed_at(struct event *event, struct timespec *when)
{
    struct mark *mark = mark_hold(event);
    if (!mark)
        return false;
    pthread_mutex_lock(&mark->lock);
    const bool passed = mark->passed;
    *when = mark->when;
    pthread_mutex_unlock(&mark->lock);
    mark_drop(mark);
    return passed;
}

static int32_t event_elapsed(void *start, void *end, double *ms)
{
    struct timespec from, to;
    if (!passed_at(start, &from) || !passed_at(end, &to))
        return HW_NOT_READY;
    *ms = (double)(to.tv_sec - from.tv_sec) * 1e3 +
          (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    return HW_OK;
}

/* ---- graphs: the host's nodes, which it keeps; the whole is one job ---- */

struct graph {
    uint32_t count;
    struct hw_node nodes[];
};

static int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **out)
{
    struct graph *graph = malloc(sizeof *graph + count * sizeof *nodes);
    if (!graph)
        return hw_fail(((struct queue *)queue)->device->instance->host, HW_NO_MEMORY,
                       "out of memory");
    graph->count = count;
    memcpy(graph->nodes, nodes, count * sizeof *nodes);
    *out = graph;
    return HW_OK;
}

static int32_t run_graph(struct queue *queue, struct job *job)
{
    const struct graph *graph = job->u.graph;
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hw_node *node = &graph->nodes[i];
        struct job one;
        memcpy(&one.u, node->args, node->bytes);
        switch (node->op) {
        case HW_OP_SILU:
            run_silu(queue, &one);
            break;
        case HW_OP_ADD:
            run_add(queue, &one);
            break;
        case HW_OP_MATMUL:
            run_matmul(queue, &one);
            break;
        default: /* supports() has said yes to no other */
            run_copy(queue, &one);
        }
    }
    return HW_OK;
}

static int32_t graph_launch(void *self, void *graph)
{
    struct queue *queue = self;
    struct job *job = job_new(queue, run_graph);
    if (!job)
        return no_job(queue);
    job->u.graph = graph;
    return submit(queue, job);
}

static void graph_destroy(void *graph)
{
    free(graph);
}

/* ---- packed weights: matrices of f32 without gaps ---- */

static int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout)
{
    if (src->dtype != HW_F32 || src->rank != 2)
        return hw_fail(((struct device *)device)->instance->host, HW_UNSUPPORTED,
                       "packs matrices of f32");
    *bytes = (uint64_t)(src->extent[0] * src->extent[1]) * sizeof(float);
    *layout = LAYOUT_DENSE;
    return HW_OK;
}

static int32_t pack(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct hw_copy op = { .src = *src, .dst = *dst };
    unpack(&op.dst);
    return copy(((struct queue *)queue)->device, queue, &op);
}

/* ---- extension ops: how things go wrong ---- */

/* Keeps the queue busy for some milliseconds. */
static int32_t run_sleep(struct queue *queue, struct job *job)
{
    const struct timespec time = { job->u.number / 1000, job->u.number % 1000 * 1000000 };
    (void)queue;
    nanosleep(&time, NULL);
    return HW_OK;
}

/* Fails with this status when its turn comes, long after the call has answered HW_OK. */
static int32_t run_fail(struct queue *queue, struct job *job)
{
    snprintf(queue->error_text, sizeof queue->error_text,
             "failed on request, when its turn came");
    return (int32_t)job->u.number;
}

static int32_t run_lose(struct queue *queue, struct job *job)
{
    (void)job;
    queue->device->lost = true;
    return HW_LOST;
}

static int32_t call_later(struct queue *queue, int32_t (*run)(struct queue *, struct job *),
                          int64_t argument)
{
    struct job *job = job_new(queue, run);
    if (!job)
        return no_job(queue);
    job->u.number = argument;
    return submit(queue, job);
}

static int32_t call_sleep(void *self, void *queue, const struct hw_arg *args,
                          uint32_t count)
{
    (void)self, (void)count;
    return call_later(queue, run_sleep, args[0].i);
}

static int32_t call_fail(void *self, void *queue, const struct hw_arg *args, uint32_t count)
{
    (void)self, (void)count;
    return call_later(queue, run_fail, args[0].i);
}

static int32_t call_lose(void *self, void *queue, const struct hw_arg *args, uint32_t count)
{
    (void)self, (void)args, (void)count;
    return call_later(queue, run_lose, 0);
}

static int32_t extension(void *device, uint32_t index, struct hw_extension *out)
{
    static const struct hw_extension rows[] = {
        { .size = sizeof *rows,
          .name = "discrete.sleep",
          .signature = "i",
          .call = call_sleep },
        { .size = sizeof *rows,
          .name = "discrete.fail",
          .signature = "i",
          .call = call_fail },
        { .size = sizeof *rows,
          .name = "discrete.lose",
          .signature = "",
          .call = call_lose },
    };
    (void)device;
    if (index >= sizeof rows / sizeof *rows)
        return HW_END;
    hw_answer(out, &rows[index]);
    return HW_OK;
}

/* ---- the instance, its devices, the table ---- */

static int32_t plugin_open(const struct hw_host *host, void **out)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    instance->host = host;
    *out = instance;
    return HW_OK;
}

static void plugin_close(void *instance)
{
    free(instance);
}

static int32_t device_count(void *instance, int32_t *count)
{
    (void)instance;
    *count = DEVICES;
    return HW_OK;
}

/* Facts are read from the device, and asked for anew each time. A UUID tells the two apart:
 * they have no PCI address. */
static int32_t device_info(void *instance, int32_t index, struct hw_device_info *info)
{
    (void)instance;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_DISCRETE;
    strcpy(facts.name, "Test device with separate memory");
    strcpy(facts.vendor, "none");
    strcpy(facts.arch, "test");
    facts.memory_total = MEMORY_BYTES;
    facts.units = 1;
    facts.has_uuid = 1;
    facts.uuid[0] = 0xd1;
    facts.uuid[15] = (uint8_t)index;
    facts.buffer_max = index ? FAR_MOST : 0;
    facts.buffer_alignment = index ? ALIGNMENT : 0;
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t device_open(void *instance, int32_t index, void **out)
{
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return hw_fail(((struct instance *)instance)->host, HW_NO_MEMORY, "out of memory");
    device->instance = instance;
    device->index = index;
    *out = device;
    return HW_OK;
}

static void device_close(void *device)
{
    free(device);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const uint32_t sizes[] = HW_OP_SIZES;
    static const struct hw_plugin_ops ops = {
        .size = sizeof ops, .matmul = matmul, .silu = silu, .add = add, .copy = copy
    };
    (void)host;
    table->vendor = "none";
    table->version = "1";
    table->ops = &ops;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = plugin_close;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = device_close;
    table->queue_open = queue_open;
    table->queue_close = queue_close;
    table->queue_wait = queue_wait;
    table->buffer_alloc = buffer_alloc;
    table->buffer_free = buffer_free;
    table->transfer = transfer;
    table->event_create = event_create;
    table->event_destroy = event_destroy;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_sync = event_sync;
    table->event_query = event_query;
    table->event_callback = event_callback;
    table->event_elapsed = event_elapsed;
    table->supports = supports;
    table->kernel_info = kernel_info;
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
    table->pack_size = pack_size;
    table->pack = pack;
    table->extension = extension;
    return HW_OK;
}

HW_PLUGIN("discrete", "title=Discrete test device\nvendor=none\nrank=95\n", fill)
