/* SPDX-License-Identifier: MIT */
/* queue.c - a queue is a thread and the jobs that wait for it. */
#include "discrete.h"

#include <stdlib.h>

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

int32_t queue_open(void *self, const struct hw_queue_desc *desc, void **out)
{
    struct device *device = self;
    const struct hw_host *host = device->instance->host;
    if (device->lost)
        return device_lost(device);
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    queue->device = device;
    queue->choice = device->choice;
    const int32_t status = kernel_choose_for_queue(host, desc, &queue->choice);
    if (status) {
        free(queue);
        return status;
    }
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (pthread_create(&queue->thread, NULL, work, queue) != 0) {
        free(queue);
        return hw_fail(host, HW_DRIVER, "cannot start a thread for the queue");
    }
    *out = queue;
    return HW_OK;
}

int32_t queue_wait(void *self)
{
    struct queue *queue = self;
    pthread_mutex_lock(&queue->lock);
    while (queue->first || !queue->idle)
        pthread_cond_wait(&queue->changed, &queue->lock);
    int32_t error = queue->error;
    queue->error = HW_OK;
    pthread_mutex_unlock(&queue->lock);
    if (queue->device->lost)
        return device_lost(queue->device);
    if (error)
        return hw_fail(queue->device->instance->host, error, "%s", queue->error_text);
    return HW_OK;
}

void queue_close(void *self)
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

struct job *queue_job(struct queue *queue, job_fn *run)
{
    struct job *job = queue->device->lost ? NULL : calloc(1, sizeof *job);
    if (job)
        job->run = run;
    return job;
}

int32_t queue_no_job(const struct queue *queue)
{
    if (queue->device->lost)
        return device_lost(queue->device);
    return hw_fail(queue->device->instance->host, HW_NO_MEMORY, "out of memory");
}

int32_t queue_submit(struct queue *queue, struct job *job)
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
