/* SPDX-License-Identifier: MIT */
/* hw_minimal.c - a whole plugin in one file: one device, one op, rmsnorm in f32, computed on
 * the host. Build it, then test it:
 *
 *   cc -shared -fPIC -fvisibility=hidden -o hw_minimal.so hw_minimal.c \
 *      $(pkg-config --cflags hw) -lm
 *   hw verify ./hw_minimal.so
 *
 * <hw/plugin.h> describes every function. Without a `copy` op, the library refuses operands
 * whose innermost elements are not neighbours: they would have to be copied first. */
#include <hw/plugin.h>

#include <math.h>
#include <stdlib.h>

/* ---- the instance and its only device ---- */

/* This plugin keeps no state: the instance, the device and the queue are the host's table,
 * which is needed to report errors. */
static int32_t plugin_open(const struct hw_host *host, void **self)
{
    *self = (void *)(uintptr_t)host;
    return HW_OK;
}

static int32_t device_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return HW_OK;
}

static int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    struct hw_device_info facts = hw_no_facts();
    (void)self, (void)index;
    facts.kind = HW_DEVICE_CPU;
    facts.features = HW_FEATURE_UNIFIED_MEMORY | HW_FEATURE_HOST_TENSORS;
    strcpy(facts.name, "Minimal device");
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t device_open(void *self, int32_t index, void **device)
{
    (void)index;
    *device = self;
    return HW_OK;
}

/* Closes an instance, a device or a queue. */
static void nothing_to_close(void *self)
{
    (void)self;
}

/* ---- queues: an op is done when its call returns ---- */

static int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    /* A plugin refuses what it does not know, and ignores nothing. */
    if (!hw_knows(desc, sizeof *desc) || desc->flags & ~(uint32_t)HW_QUEUE_SYNCHRONOUS)
        return hw_fail(device, HW_UNSUPPORTED, "sets a flag or field of a newer version");
    *queue = device;
    return HW_OK;
}

static int32_t queue_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}

/* ---- memory: the host's own ---- */

static int32_t buffer_alloc(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer)
{
    const uint64_t whole = bytes / 256 * 256 + 256;
    void *memory = whole > bytes ? aligned_alloc(256, (size_t)whole) : NULL;
    if (!memory)
        return hw_fail(device, HW_NO_MEMORY, "cannot allocate %llu bytes",
                       (unsigned long long)bytes);
    if (flags & HW_BUFFER_ZEROED)
        memset(memory, 0, (size_t)bytes);
    buffer->impl = buffer->host = memory;
    buffer->flags = flags | HW_BUFFER_HOST_VISIBLE;
    return HW_OK;
}

static void buffer_free(void *device, struct hw_buffer *buffer)
{
    (void)device;
    free(buffer->impl);
}

static int32_t transfer(void *queue, const struct hw_transfer *t)
{
    void *dst = t->dst ? t->dst->host : t->dst_host;
    const void *src = t->src ? t->src->host : t->src_host;
    (void)queue;
    hw_transfer_host(t, (char *)dst + t->dst_offset, (const char *)src + t->src_offset);
    return HW_OK;
}

/* ---- the op: y = x * weight / sqrt(mean(x^2) + eps) ---- */

static void rmsnorm_row(float *y, const float *x, const float *weight, int64_t n, float eps)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    const double scale = 1.0 / sqrt(sum / (double)n + (double)eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * scale * (weight ? (double)weight[i] : 1.0));
}

/* The first element of row `row`, counted over all but the last of the extents. */
static float *row_of(const struct hw_tensor *t, int64_t row)
{
    char *at = hw_tensor_address(t);
    for (int i = t->rank - 2; i >= 0; i--) {
        at += row % t->extent[i] * t->stride[i];
        row /= t->extent[i];
    }
    return (float *)(void *)at;
}

static int32_t rmsnorm(void *device, void *queue, const struct hw_rmsnorm *op)
{
    (void)device;
    if (op->x.dtype != HW_F32 || (op->weight.dtype && op->weight.dtype != HW_F32))
        return hw_fail(queue, HW_UNSUPPORTED, "rmsnorm is for f32 only");
    int64_t rows = 1;
    for (int i = 0; i < op->x.rank - 1; i++)
        rows *= op->x.extent[i];
    const float *weight = op->weight.dtype ? row_of(&op->weight, 0) : NULL;
    for (int64_t r = 0; r < rows; r++)
        rmsnorm_row(row_of(&op->y, r), row_of(&op->x, r), weight,
                    op->x.extent[op->x.rank - 1], op->eps);
    return HW_OK;
}

/* ---- the table ---- */

static const struct hw_plugin_ops ops = { .size = sizeof ops, .rmsnorm = rmsnorm };
static const uint32_t op_sizes[] = HW_OP_SIZES;

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->version = "1";
    table->vendor = "none";
    table->ops = &ops;
    table->op_sizes = op_sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = nothing_to_close;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = nothing_to_close;
    table->queue_open = queue_open;
    table->queue_close = nothing_to_close;
    table->queue_wait = queue_wait;
    table->buffer_alloc = buffer_alloc;
    table->buffer_free = buffer_free;
    table->transfer = transfer;
    return HW_OK;
}

/* rank=99: chosen after every other device, for it has one op. */
HW_PLUGIN("minimal", "title=Minimal\nvendor=none\nrank=99\n", fill)
