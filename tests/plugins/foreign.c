/* SPDX-License-Identifier: MIT */
/* foreign.c - features that the plugin discrete lacks: imported and exported queues and memory,
 * devices known by a handle (foreign.h), calls of the application in graphs, which only the first
 * device builds, and user kernels. It has two devices with memory of their own, one op, and six
 * programs for user kernels. The name of a program is its source and its blob:
 *
 *   affine  toif  out = f in + i
 *   double  x     x = 2 x
 *   extent  o     out = groups, and work-items of a group, in three dimensions
 *   refuse        the driver rejects the launch
 *   lose          the device is lost after it has run
 *   reserve i     the plugin allocates i bytes for itself, or frees them if i is negative
 *
 * Functions that close or free something log it, so that tests can count the calls. */
#include "foreign.h"

#include <hw/plugin.h>

#define DEVICES 2

struct device {
    const struct hw_host *host;
    int32_t index;
    bool lost;
};

struct queue {
    struct device *device;
    struct foreign_queue *work;
    bool imported;
};

/* The instance contains the array of devices. */
struct instance {
    const struct hw_host *host;
    struct device devices[DEVICES];
};

static void say(const struct hw_host *host, const char *what, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s", what, name);
    host->log(host->instance, HW_LOG_DEBUG, text);
}

static int32_t lost(const struct device *device)
{
    return hw_fail(device->host, HW_LOST, "the test device was lost on request");
}

static int32_t out_of_memory(const struct device *device)
{
    return hw_fail(device->host, HW_NO_MEMORY, "out of memory");
}

/* ---- memory ---- */

struct memory {
    struct foreign_memory cells;
    bool imported;
};

static int32_t memory_make(struct device *device, struct foreign_memory cells,
                           bool imported, void **out)
{
    struct memory *memory = cells.cells ? malloc(sizeof *memory) : NULL;
    if (!memory)
        return out_of_memory(device);
    *memory = (struct memory){ cells, imported };
    *out = memory;
    return HW_OK;
}

static int32_t buffer_alloc(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer)
{
    if (flags & (HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED))
        return hw_fail(((struct device *)device)->host, HW_UNSUPPORTED,
                       "the host cannot see its memory");
    unsigned char *address = calloc(1, bytes);
    int32_t status = memory_make(device, (struct foreign_memory){ bytes, address }, false,
                                 &buffer->impl);
    if (status)
        free(address);
    buffer->flags = flags;
    return status;
}

static int32_t buffer_import(void *self, const struct hw_import *desc,
                             struct hw_buffer *buffer)
{
    struct device *device = self;
    const struct foreign_memory *memory = desc->handle;
    if (strcmp(desc->kind, FOREIGN_MEMORY) != 0)
        return hw_fail(device->host, HW_UNSUPPORTED, "memory of kind \"%s\" is not its own",
                       desc->kind);
    if (!memory)
        return hw_fail(device->host, HW_INVALID, "NULL is not a memory handle");
    if (desc->offset + desc->bytes > memory->bytes)
        return hw_fail(device->host, HW_INVALID,
                       "%llu bytes from byte %llu on of memory that has %llu",
                       (unsigned long long)desc->bytes, (unsigned long long)desc->offset,
                       (unsigned long long)memory->bytes);
    buffer->offset = desc->offset;
    return memory_make(device, *memory, true, &buffer->impl);
}

static int32_t buffer_export(void *self, const struct hw_buffer *buffer, const char *kind,
                             struct hw_import *desc)
{
    struct device *device = self;
    struct memory *memory = buffer->impl;
    if (strcmp(kind, FOREIGN_MEMORY) != 0)
        return hw_fail(device->host, HW_UNSUPPORTED, "memory is not of kind \"%s\"", kind);
    desc->kind = FOREIGN_MEMORY;
    desc->handle = &memory->cells;
    desc->offset = buffer->offset;
    return HW_OK;
}

/* Imported memory is freed by its owner. */
static void buffer_free(void *device, struct hw_buffer *buffer)
{
    struct memory *memory = buffer->impl;
    (void)device;
    if (!memory->imported)
        free(memory->cells.cells);
    free(memory);
}

static unsigned char *cells(const struct hw_buffer *buffer, uint64_t offset)
{
    return ((struct memory *)buffer->impl)->cells.cells + buffer->offset + offset;
}

/* ---- queues ---- */

/* The only row is "plain". Other rows are rejected. */
static int32_t check_desc(const struct device *device, const struct hw_queue_desc *desc)
{
    const char *kernel = desc->kernel ? desc->kernel : "";
    if (*kernel && strcmp(kernel, "portable") != 0 && strcmp(kernel, "plain") != 0)
        return hw_fail(device->host, HW_INVALID, "no row is called \"%s\"; there is plain",
                       kernel);
    return HW_OK;
}

static int32_t queue_make(struct device *device, const struct hw_queue_desc *desc,
                          struct foreign_queue *imported, void **out)
{
    const int32_t status = check_desc(device, desc);
    if (status)
        return status;
    struct queue *queue = calloc(1, sizeof *queue);
    struct foreign_queue *work = imported ? imported : calloc(1, sizeof *work);
    if (!queue || !work) {
        free(queue);
        if (!imported)
            free(work);
        return out_of_memory(device);
    }
    *queue = (struct queue){ device, work, imported != NULL };
    *out = queue;
    return HW_OK;
}

static int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **out)
{
    return ((struct device *)device)->lost ? lost(device)
                                           : queue_make(device, desc, NULL, out);
}

/* The queue's owner has decided whether it records times. */
static int32_t queue_import(void *self, const struct hw_queue_desc *desc, const char *kind,
                            void *handle, void **out)
{
    struct device *device = self;
    const struct foreign_queue *theirs = handle;
    if (strcmp(kind, FOREIGN_QUEUE) != 0)
        return hw_fail(device->host, HW_UNSUPPORTED,
                       "queues of kind \"%s\" are not its own", kind);
    if (!theirs)
        return hw_fail(device->host, HW_INVALID, "NULL is not a queue handle");
    if (desc->flags & HW_QUEUE_TIMING && !theirs->timed)
        return hw_fail(device->host, HW_UNSUPPORTED, "a queue that is not timed");
    return queue_make(device, desc, handle, out);
}

static int32_t queue_export(void *self, const char *kind, void **handle)
{
    struct queue *queue = self;
    if (strcmp(kind, FOREIGN_QUEUE) != 0)
        return hw_fail(queue->device->host, HW_UNSUPPORTED, "queues are not of kind \"%s\"",
                       kind);
    *handle = queue->work;
    return HW_OK;
}

static int32_t queue_wait(void *self)
{
    struct queue *queue = self;
    foreign_finish(queue->work);
    return queue->device->lost ? lost(queue->device) : HW_OK;
}

static void queue_close(void *self)
{
    struct queue *queue = self;
    foreign_finish(queue->work);
    say(queue->device->host, "closed", queue->imported ? "an imported queue" : "a queue");
    if (!queue->imported) {
        foreign_close(queue->work);
        free(queue->work);
    }
    free(queue);
}

/* ---- work: moving bytes, or computing ---- */

struct job {
    struct foreign_job base;
    struct device *device;
    void (*work)(const struct job *job);
    unsigned char *out;
    const unsigned char *in[3];
    uint64_t count; /* number of floats */
    struct hw_transfer rows;
    double f;
    int64_t i;
    uint64_t extent[6];
};

static void run(struct foreign_job *base)
{
    struct job *job = (struct job *)(void *)base;
    if (!job->device->lost)
        job->work(job);
    free(job);
}

static int32_t submit(struct queue *queue, const struct job *described)
{
    struct job *job = queue->device->lost ? NULL : malloc(sizeof *job);
    if (!job)
        return queue->device->lost ? lost(queue->device) : out_of_memory(queue->device);
    *job = *described;
    job->base.run = run;
    job->device = queue->device;
    foreign_submit(queue->work, &job->base);
    return HW_OK;
}

static void work_move(const struct job *job)
{
    hw_transfer_host(&job->rows, job->out, job->in[0]);
}

static int32_t transfer(void *queue, const struct hw_transfer *t)
{
    return submit(
        queue, &(struct job){ .work = work_move,
                              .out = t->dst ? cells(t->dst, t->dst_offset) : t->dst_host,
                              .in[0] = t->src ? cells(t->src, t->src_offset) : t->src_host,
                              .rows = *t });
}

static unsigned char *first(const struct hw_tensor *t)
{
    return cells(t->buffer, t->offset);
}

static void work_add(const struct job *job)
{
    const float *a = (const void *)job->in[0], *b = (const void *)job->in[1];
    float *y = (void *)job->out;
    for (uint64_t i = 0; i < job->count; i++)
        y[i] = a[i] + b[i];
}

static void work_add_three(const struct job *job)
{
    const float *a = (const void *)job->in[0], *b = (const void *)job->in[1],
                *c = (const void *)job->in[2];
    float *y = (void *)job->out;
    for (uint64_t i = 0; i < job->count; i++)
        y[i] = a[i] + b[i] + c[i];
}

static int32_t add(void *device, void *queue, const struct hw_add *op)
{
    if (op->y.dtype != HW_F32 || op->y.rank != 1 || op->a.extent[0] != op->y.extent[0] ||
        op->b.extent[0] != op->y.extent[0])
        return hw_fail(((struct device *)device)->host, HW_UNSUPPORTED,
                       "add is for vectors of f32");
    return submit(queue, &(struct job){ .work = work_add,
                                        .out = first(&op->y),
                                        .in = { first(&op->a), first(&op->b) },
                                        .count = (uint64_t)op->y.extent[0] });
}

/* ---- graphs ---- */

/* The work that a call of the application has submitted: kept, and repeated by each launch. */
struct step {
    struct hw_node node;
    struct foreign_queue recorded;
    const struct hw_add *then; /* the next node, executed together with this one; or NULL */
};

static bool is_same(const struct hw_tensor *a, const struct hw_tensor *b)
{
    return a->buffer == b->buffer && a->offset == b->offset && a->extent[0] == b->extent[0];
}

/* Whether the nodes are y = a + b and z = y + c, followed by discarding y. */
static bool is_sum_of_three(const struct hw_node *nodes, uint32_t count)
{
    if (count < 3 || nodes[0].op != HW_OP_ADD || nodes[1].op != HW_OP_ADD ||
        nodes[2].op != HW_NODE_DISCARD || nodes[2].bytes != sizeof(struct hw_tensor))
        return false;
    const struct hw_add *first = nodes[0].args, *second = nodes[1].args;
    return is_same(&first->y, &second->a) && is_same(&first->y, nodes[2].args) &&
           !is_same(&first->y, &second->y);
}

struct graph {
    struct device *device;
    uint32_t count;
    struct step steps[];
};

static int32_t graph_build(void *self, const struct hw_node *nodes, uint32_t count,
                           void **out)
{
    struct queue *queue = self;
    struct device *device = queue->device;
    if (device->index > 0)
        return hw_fail(device->host, HW_UNSUPPORTED, "the second device builds no graphs");
    struct graph *graph = calloc(1, sizeof *graph + count * sizeof *graph->steps);
    int32_t status = graph ? HW_OK : out_of_memory(device);
    for (uint32_t i = 0; i < count && !status; i++) {
        const struct hw_node_call *call = nodes[i].args;
        graph->steps[i].node = nodes[i];
        if (is_sum_of_three(&nodes[i], count - i)) {
            graph->steps[i].then = nodes[i + 1].args;
            i += 2; /* whose steps stay empty */
            continue;
        }
        if (nodes[i].op != HW_NODE_CALL)
            continue;
        if (nodes[i].bytes != sizeof *call || strcmp(call->kind, FOREIGN_QUEUE) != 0)
            status = hw_fail(device->host, HW_INTERNAL, "this is not a call in a graph");
        else if (call->fn(call->user, &graph->steps[i].recorded))
            status = hw_fail(device->host, HW_DRIVER, "a call in the graph failed");
    }
    if (status) {
        free(graph);
        return status;
    }
    graph->device = device;
    graph->count = count;
    *out = graph;
    return HW_OK;
}

static void work_recorded(const struct job *job)
{
    const struct foreign_queue *recorded = (const void *)job->in[0];
    for (struct foreign_job *at = recorded->first; at; at = at->next)
        at->run(at);
}

static int32_t add_three(void *queue, const struct hw_add *one, const struct hw_add *two)
{
    return submit(queue,
                  &(struct job){ .work = work_add_three,
                                 .out = first(&two->y),
                                 .in = { first(&one->a), first(&one->b), first(&two->b) },
                                 .count = (uint64_t)two->y.extent[0] });
}

static int32_t launch_step(const struct graph *graph, void *queue, const struct step *step)
{
    if (!step->node.args || step->node.op == HW_NODE_DISCARD)
        return HW_OK;
    if (step->node.op == HW_NODE_CALL)
        return submit(queue, &(struct job){ .work = work_recorded,
                                            .in[0] = (const void *)&step->recorded });
    return step->then ? add_three(queue, step->node.args, step->then)
                      : add(graph->device, queue, step->node.args);
}

static int32_t graph_launch(void *queue, void *self)
{
    const struct graph *graph = self;
    int32_t status = HW_OK;
    for (uint32_t i = 0; i < graph->count && !status; i++)
        status = launch_step(graph, queue, &graph->steps[i]);
    return status;
}

static void graph_destroy(void *graph)
{
    free(graph);
}

/* ---- packed weights: unchanged vectors of f32 ---- */

static int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout)
{
    (void)device;
    *bytes = (uint64_t)src->extent[0] * sizeof(float);
    *layout = 1;
    return HW_OK;
}

/* Packing three numbers takes two steps: the second fails when the first is queued. */
static int32_t pack(void *self, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    struct queue *queue = self;
    const int32_t status = submit(
        queue, &(struct job){ .work = work_move,
                              .out = first(dst),
                              .in[0] = first(src),
                              .rows.bytes = (uint64_t)src->extent[0] * sizeof(float) });
    return status || src->extent[0] != 3
               ? status
               : hw_fail(queue->device->host, HW_DRIVER, "the second step failed");
}

/* ---- user kernels ---- */

static void work_affine(const struct job *job)
{
    const float *in = (const void *)job->in[0];
    float *out = (void *)job->out;
    for (uint64_t i = 0; i < job->count; i++)
        out[i] = (float)(job->f * in[i] + (double)job->i);
}

static void work_double(const struct job *job)
{
    float *x = (void *)job->out;
    for (uint64_t i = 0; i < job->count; i++)
        x[i] *= 2.0f;
}

static void work_extent(const struct job *job)
{
    float *out = (void *)job->out;
    for (uint64_t i = 0; i < job->count && i < 6; i++)
        out[i] = (float)job->extent[i];
}

static void work_lose(const struct job *job)
{
    job->device->lost = true;
}

struct program {
    const char *name, *signature;
    void (*work)(const struct job *job); /* NULL: refused at launch */
};

static const struct program programs[] = {
    { "affine", "toif", work_affine }, { "double", "x", work_double },
    { "extent", "o", work_extent },    { "refuse", "", NULL },
    { "reserve", "i", NULL },          { "lose", "", work_lose }
};

struct kernel {
    struct device *device;
    const struct program *program;
    uint32_t group[3];
};

static int32_t kernel_build(void *self, const struct hw_user_kernel *desc, void **out)
{
    struct device *device = self;
    const char *text = desc->source ? desc->source : desc->blob;
    const size_t bytes = desc->source ? strlen(text) : (size_t)desc->blob_bytes;
    if (!hw_knows(desc, sizeof *desc))
        return hw_fail(device->host, HW_UNSUPPORTED, "the description is newer");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const struct program *program = &programs[i];
        if (strlen(program->name) != bytes || memcmp(program->name, text, bytes) != 0)
            continue;
        if (strcmp(program->signature, desc->signature) != 0)
            return hw_fail(device->host, HW_INVALID, "%s takes \"%s\"", program->name,
                           program->signature);
        struct kernel *kernel = malloc(sizeof *kernel);
        if (!kernel)
            return out_of_memory(device);
        *kernel = (struct kernel){ device,
                                   program,
                                   { desc->group, desc->group_y, desc->group_z } };
        *out = kernel;
        return HW_OK;
    }
    return hw_fail(device->host, HW_DRIVER, "line 1: there is no such program");
}

/* The host has checked the arguments against the signature. */
static int32_t kernel_launch_3d(void *self, void *kernel_self, const uint64_t groups[3],
                                const struct hw_arg *args, uint32_t count)
{
    struct queue *queue = self;
    const struct kernel *kernel = kernel_self;
    const struct program *program = kernel->program;
    struct job job = { .work = program->work };
    for (int i = 0; i < 3; i++) {
        job.extent[i] = groups[i];
        job.extent[3 + i] = kernel->group[i];
    }
    if (!strcmp(program->name, "reserve"))
        return hw_count_memory(queue->device->host, queue->device, args[0].i);
    if (!program->work)
        return hw_fail(queue->device->host, HW_DRIVER, "the driver launches no such thing");
    for (uint32_t i = 0; i < count; i++)
        switch (program->signature[i]) {
        case 't':
            job.in[0] = first(args[i].tensor);
            break;
        case 'i':
            job.i = args[i].i;
            break;
        case 'f':
            job.f = args[i].f;
            break;
        default: /* o, x */
            job.out = first(args[i].tensor);
            job.count = (uint64_t)args[i].tensor->extent[0];
        }
    return submit(queue, &job);
}

static int32_t kernel_launch(void *queue, void *kernel, uint64_t groups,
                             const struct hw_arg *args, uint32_t count)
{
    return kernel_launch_3d(queue, kernel, (const uint64_t[3]){ groups, 1, 1 }, args,
                            count);
}

static void kernel_destroy(void *self)
{
    struct kernel *kernel = self;
    say(kernel->device->host, "destroyed", kernel->program->name);
    free(kernel);
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

static int32_t device_info(void *instance, int32_t index, struct hw_device_info *info)
{
    (void)instance;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_OTHER;
    strcpy(facts.name, "Test device for what others made");
    facts.has_uuid = 1;
    facts.uuid[0] = 0xf0;
    facts.uuid[15] = (uint8_t)index;
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t device_import(void *self, const char *kind, void *handle, int32_t *index)
{
    const struct instance *instance = self;
    const struct foreign_device *theirs = handle;
    if (strcmp(kind, FOREIGN_DEVICE) != 0)
        return hw_fail(instance->host, HW_UNSUPPORTED, "devices of kind \"%s\"", kind);
    if (theirs->number < FOREIGN_FIRST || theirs->number >= FOREIGN_FIRST + DEVICES)
        return hw_fail(instance->host, HW_NO_DEVICE, "no device has the number %d",
                       theirs->number);
    *index = theirs->number - FOREIGN_FIRST;
    return HW_OK;
}

static int32_t device_open(void *self, int32_t index, void **out)
{
    struct instance *instance = self;
    struct device *device = &instance->devices[index];
    *device = (struct device){ .host = instance->host, .index = index };
    *out = device;
    return HW_OK;
}

static void device_close(void *device)
{
    (void)device;
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    static const uint32_t sizes[] = HW_OP_SIZES;
    static const struct hw_plugin_ops ops = { .size = sizeof ops, .add = add };
    (void)host;
    table->vendor = "nobody";
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
    table->pack_size = pack_size;
    table->pack = pack;
    table->buffer_import = buffer_import;
    table->queue_import = queue_import;
    table->buffer_export = buffer_export;
    table->queue_export = queue_export;
    table->device_import = device_import;
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
    table->discards = 1;
    table->kernel_build = kernel_build;
    table->kernel_launch = kernel_launch;
    table->kernel_launch_3d = kernel_launch_3d;
    table->kernel_destroy = kernel_destroy;
    return HW_OK;
}

HW_PLUGIN("foreign", "vendor=nobody\nrank=99\n", fill)
