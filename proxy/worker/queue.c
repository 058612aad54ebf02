/* SPDX-License-Identifier: MIT */
/* queue.c - queues. Each queue is a channel that a thread of the worker serves. */
#include "worker/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

void *remote_begin(struct remote_queue *queue, enum wire_call call, uint32_t bytes,
                   int32_t *status)
{
    enum channel_fault fault;
    void *arguments = channel_begin(queue->channel, call, bytes, 0, worker_look, &fault);
    *status = arguments ? HW_OK : worker_fault(queue->worker, fault);
    return arguments;
}

void remote_push(struct remote_queue *queue)
{
    channel_push(queue->channel, false);
}

int32_t remote_answer(struct remote_queue *queue, void *data, uint32_t bytes)
{
    struct wire_reply reply;
    channel_push(queue->channel, true);
    const enum channel_fault fault = channel_wait(queue->channel, 0, worker_look);
    if (fault)
        return worker_fault(queue->worker, fault);
    channel_reply(queue->channel, bytes, &reply);
    worker_hear(queue->worker);
    if (reply.status)
        return worker_fail(queue->worker, reply.status, "%s", reply.text);
    if (bytes)
        memcpy(data, reply.data, bytes);
    return HW_OK;
}

static int32_t ask_to_wait(struct remote_queue *queue)
{
    int32_t status;
    return remote_begin(queue, WIRE_WAIT, 0, &status) ? remote_answer(queue, NULL, 0)
                                                      : status;
}

/* ---- memory that the plugin counts ---- */

/* The memory that the plugin has counted since the last call. The worker's number is clamped to
 * plausible values. */
static int64_t counted_since(struct worker *worker, uint32_t device)
{
    const int64_t most = INT64_C(1) << 48,
                  said = atomic_load_explicit(&worker->wire->memory[device].counted,
                                              memory_order_relaxed);
    const int64_t now = said < 0 ? 0 : said < most ? said : most;
    pthread_mutex_lock(&worker->lock);
    const int64_t more = now - worker->counted[device];
    worker->counted[device] = now;
    pthread_mutex_unlock(&worker->lock);
    return more;
}

/* Counts for hw_pool_stats and for the pool. The worker itself enforces the limit. */
static void count(const struct remote_device *device)
{
    struct worker *worker = device->worker;
    const struct hw_host *host = worker->host;
    const int64_t more = counted_since(worker, device->index);
    if (!more || !host->count_memory(host->instance, (void *)(uintptr_t)device, more))
        return;
    pthread_mutex_lock(&worker->lock); /* tries again the next time */
    worker->counted[device->index] -= more;
    pthread_mutex_unlock(&worker->lock);
}

/* ---- waiting ---- */

int32_t remote_settle(struct remote_queue *queue)
{
    const int32_t status = ask_to_wait(queue);
    if (status && !queue->error) {
        queue->error = status;
        snprintf(queue->error_text, sizeof queue->error_text, "%s", worker_message());
    }
    if (status) /* a form that failed no longer counts as accepted */
        memset(queue->forms, 0, sizeof queue->forms);
    queue->staged = 0;
    return status == HW_LOST ? HW_LOST : HW_OK;
}

int32_t remote_queue_wait(void *of)
{
    struct remote_queue *queue = of;
    (void)remote_settle(queue);
    count(queue->device);
    const int32_t status = queue->error;
    queue->error = HW_OK;
    return status ? worker_fail(queue->worker, status, "%s", queue->error_text) : HW_OK;
}

/* ---- opening and closing ---- */

static int32_t ask_open(const struct remote_queue *queue, const struct hw_queue_desc *desc)
{
    const char *kernel = desc->kernel ? desc->kernel : "";
    struct wire_queue arguments = { .device = queue->device->index,
                                    .flags = desc->flags,
                                    .channel = (uint32_t)(queue->channel -
                                                          queue->worker->channel) };
    if (strlen(kernel) >= sizeof arguments.kernel)
        return worker_fail(queue->worker, HW_INVALID, "the list of kernels is too long");
    strcpy(arguments.kernel, kernel);
    return worker_ask(queue->worker, &(struct question){ .channel = WIRE_CONTROL,
                                                         .call = WIRE_QUEUE_OPEN,
                                                         .arguments = &arguments,
                                                         .bytes = sizeof arguments });
}

int32_t remote_queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    struct remote_device *on = device;
    struct remote_queue *made = calloc(1, sizeof *made);
    if (!made)
        return worker_fail(on->worker, HW_NO_MEMORY, "out of memory for a queue");
    made->worker = on->worker;
    made->device = on;
    made->channel = worker_take_channel(on->worker);
    int32_t status = made->channel
                         ? ask_open(made, desc)
                         : worker_fail(on->worker, HW_NO_MEMORY,
                                       "a worker process (HW_WORKER) serves at most "
                                       "254 queues; close some");
    if (!status) {
        *queue = made;
        return HW_OK;
    }
    if (made->channel)
        worker_give_channel(on->worker, made->channel);
    free(made);
    return status;
}

/* Closes the queue within the deadline. Its work is done or has failed. */
static void close_in_time(struct remote_queue *queue)
{
    const uint64_t deadline = worker_closing_deadline(queue->worker);
    enum channel_fault fault;
    if (channel_begin(queue->channel, WIRE_QUEUE_CLOSE, 0, deadline, worker_look, &fault)) {
        channel_push(queue->channel, true);
        fault = channel_wait(queue->channel, deadline, worker_look);
    }
    (void)worker_fault(queue->worker, fault);
}

void remote_queue_close(void *of)
{
    struct remote_queue *queue = of;
    const bool ended = atomic_load(&queue->worker->ended);
    /* Needed even if the device is lost: the process may still run, and another queue will get the
     * channel. */
    (void)remote_settle(queue);
    close_in_time(queue);
    worker_closed(queue->worker, ended);
    if (queue->staging)
        remote_memory_free(queue->staging);
    worker_give_channel(queue->worker, queue->channel);
    free(queue);
}
