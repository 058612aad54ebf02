/* SPDX-License-Identifier: MIT */
/* remote.c - the table of a plugin in a worker process: the instance and its devices. */
#include "worker/remote.h"

#include <stdlib.h>
#include <string.h>

/* The worker process has opened the plugin already, and *self is set: see core/proxy.h. */
static int32_t remote_open(const struct hw_host *host, void **self)
{
    (void)host, (void)self;
    return HW_OK;
}

static void remote_close(void *self)
{
    struct worker *worker = self;
    const bool ended = atomic_load(&worker->ended);
    (void)worker_ask(worker,
                     &(struct question){ .channel = WIRE_CONTROL,
                                         .call = WIRE_CLOSE,
                                         .deadline = worker_closing_deadline(worker) });
    worker_closed(worker, ended);
}

static int32_t remote_device_count(void *self, int32_t *count)
{
    const struct worker *worker = self;
    *count = (int32_t)worker->device_count;
    return HW_OK;
}

static int32_t ask_facts(struct worker *worker, uint32_t index,
                         struct hw_device_info *facts)
{
    const struct wire_index arguments = { .device = index };
    return worker_ask(worker, &(struct question){ .channel = WIRE_CONTROL,
                                                  .call = WIRE_DEVICE_INFO,
                                                  .arguments = &arguments,
                                                  .bytes = sizeof arguments,
                                                  .data = facts,
                                                  .data_bytes = sizeof *facts });
}

/* Kernels in a worker process cannot access the host's memory. */
static int32_t remote_device_info(void *self, int32_t index, struct hw_device_info *info)
{
    struct hw_device_info facts;
    const int32_t status = ask_facts(self, (uint32_t)index, &facts);
    if (status)
        return status;
    facts.size = sizeof facts;
    facts.features &= ~(uint64_t)HW_FEATURE_HOST_TENSORS;
    hw_answer(info, &facts);
    return HW_OK;
}

static int32_t ask_device(struct worker *worker, enum wire_call call, uint32_t index,
                          uint64_t deadline)
{
    const struct wire_index arguments = { .device = index };
    return worker_ask(worker, &(struct question){ .channel = WIRE_CONTROL,
                                                  .call = call,
                                                  .arguments = &arguments,
                                                  .bytes = sizeof arguments,
                                                  .deadline = deadline });
}

/* Whether the device computes in host memory, which can be shared with the worker. */
static bool computes_in_host_memory(const struct hw_device_info *info)
{
    return info->kind == HW_DEVICE_CPU || info->features & HW_FEATURE_HOST_TENSORS;
}

static int32_t remote_device_open(void *self, int32_t index, void **device)
{
    struct worker *worker = self;
    struct remote_device *made = calloc(1, sizeof *made);
    if (!made)
        return worker_fail(worker, HW_NO_MEMORY, "out of memory for a device");
    struct hw_device_info facts;
    int32_t status = ask_facts(worker, (uint32_t)index, &facts);
    if (!status)
        status = ask_device(worker, WIRE_DEVICE_OPEN, (uint32_t)index, 0);
    if (status) {
        free(made);
        return status;
    }
    made->worker = worker;
    made->index = (uint32_t)index;
    made->shares = computes_in_host_memory(&facts);
    made->alignment = facts.buffer_alignment;
    *device = made;
    return HW_OK;
}

static void remote_device_close(void *device)
{
    struct remote_device *closed = device;
    struct worker *worker = closed->worker;
    const bool ended = atomic_load(&worker->ended);
    (void)ask_device(worker, WIRE_DEVICE_CLOSE, closed->index,
                     worker_closing_deadline(worker));
    worker_closed(worker, ended);
    free(closed);
}

void remote_fill(struct worker *worker, struct hw_plugin *table, uint64_t ops)
{
    worker->ops.size = sizeof worker->ops;
    remote_fill_ops(&worker->ops, ops);
    table->ops = &worker->ops;
    table->vendor = worker->vendor;
    table->op_sizes = worker->op_sizes;
    table->open = remote_open;
    table->close = remote_close;
    table->device_count = remote_device_count;
    table->device_info = remote_device_info;
    table->device_open = remote_device_open;
    table->device_close = remote_device_close;
    table->queue_open = remote_queue_open;
    table->queue_close = remote_queue_close;
    table->queue_wait = remote_queue_wait;
    table->buffer_alloc = remote_alloc;
    table->buffer_free = remote_free;
    table->transfer = remote_transfer;
    table->event_create = remote_event_create;
    table->event_destroy = remote_event_destroy;
    table->event_record = remote_event_record;
    table->event_wait = remote_event_wait;
    table->event_sync = remote_event_sync;
    table->event_query = remote_event_query;
    table->event_elapsed = remote_event_elapsed;
    table->graph_build = remote_graph_build;
    table->graph_launch = remote_graph_launch;
    table->graph_destroy = remote_graph_destroy;
    table->supports = remote_supports;
    table->kernel_info = remote_kernel_info;
    table->pack_size = remote_pack_size;
    table->pack = remote_pack;
    remote_fill_refused(table);
}
