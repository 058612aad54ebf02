/* SPDX-License-Identifier: MIT */
/* extension.c - ops of the plugin's own, which fail on request. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "discrete.h"

#include <time.h>

/* Keeps the queue busy for some milliseconds. */
static int32_t run_sleep(struct queue *queue, struct job *job)
{
    const struct timespec time = { job->u.number / 1000, job->u.number % 1000 * 1000000 };
    (void)queue;
    nanosleep(&time, NULL);
    return HW_OK;
}

/* Fails with this status when its turn comes, long after the call has returned HW_OK. */
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

static int32_t call_later(struct queue *queue, job_fn *run, int64_t argument)
{
    struct job *job = queue_job(queue, run);
    if (!job)
        return queue_no_job(queue);
    job->u.number = argument;
    return queue_submit(queue, job);
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

int32_t extension_row(void *device, uint32_t index, struct hw_extension *out)
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
