/* SPDX-License-Identifier: MIT */
/* A plugin that stops at the place named in HW_TEST_GATE. It reports that through one FIFO and
 * continues when another one tells it to (gates.c). It has its own memory. */
#define _POSIX_C_SOURCE 200809L
#define NAME            "gate"
#define CHANGES         1
#include "minimal.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

static void pass(const char *place)
{
    const char *closed = getenv("HW_TEST_GATE");
    char byte = 0;
    if (!closed || strcmp(closed, place) != 0)
        return;
    const int here = open(getenv("HW_TEST_HERE"), O_WRONLY | O_CLOEXEC);
    (void)!write(here, &byte, 1);
    close(here);
    const int go = open(getenv("HW_TEST_GO"), O_RDONLY | O_CLOEXEC);
    (void)!read(go, &byte, 1);
    close(go);
}

static int32_t start(const struct hw_host *host, void **self)
{
    pass("start");
    return plugin_open(host, self);
}

static int32_t open_device(void *self, int32_t index, void **device)
{
    pass("open");
    return plugin_device(self, index, device);
}

static void close_device(void *device)
{
    pass("close");
    plugin_close(device);
}

static int32_t info(void *self, int32_t index, struct hw_device_info *out)
{
    struct hw_device_info facts = hw_no_facts();
    (void)self, (void)index;
    facts.kind = HW_DEVICE_OTHER;
    strcpy(facts.name, DEVICE);
    hw_answer(out, &facts);
    return HW_OK;
}

static int32_t alloc(void *device, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer)
{
    const int32_t status = plugin_alloc(device, bytes, flags, buffer);
    buffer->host = NULL;
    return flags & HW_BUFFER_HOST_VISIBLE && !status ? (free(buffer->impl), HW_UNSUPPORTED)
                                                     : status;
}

static char *address(const struct hw_buffer *buffer, const void *host, uint64_t offset)
{
    return (char *)(uintptr_t)(buffer ? buffer->impl : host) +
           (buffer ? buffer->offset + offset : 0);
}

static int32_t transfer(void *queue, const struct hw_transfer *t)
{
    (void)queue;
    pass("transfer");
    hw_transfer_host(t, address(t->dst, t->dst_host, t->dst_offset),
                     address(t->src, t->src_host, t->src_offset));
    return HW_OK;
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    const float *x = (void *)address(op->x.buffer, op->x.data, op->x.offset);
    float *y = (void *)address(op->y.buffer, op->y.data, op->y.offset);
    (void)queue;
    if (op->x.dtype != HW_F32 || op->y.dtype != HW_F32 || op->x.rank != 1)
        return hw_fail(device, HW_UNSUPPORTED, "gate computes f32 of rank 1 alone");
    pass("silu");
    for (int64_t i = 0; i < op->x.extent[0]; i++)
        y[i] = x[i] / (1.0f + expf(-x[i]));
    return HW_OK;
}

static const struct hw_plugin_ops ops = { .size = sizeof ops, .silu = silu };

static void change(struct hw_plugin *table)
{
    table->ops = &ops;
    table->open = start;
    table->device_info = info;
    table->device_open = open_device;
    table->device_close = close_device;
    table->buffer_alloc = alloc;
    table->transfer = transfer;
}
