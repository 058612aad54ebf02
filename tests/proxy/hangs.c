/* SPDX-License-Identifier: MIT */
/* A plugin with a correct silu, after which another function does not return. The first number
 * selects the function (hangs.h). */
#define _GNU_SOURCE
#define NAME    "hangs"
#define CHANGES 1
#include "hangs.h"
#include "minimal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int hanging; /* where; 0: nowhere */

static void pass(int where)
{
    while (atomic_load(&hanging) == where)
        pause();
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    const float *x = hw_tensor_address(&op->x);
    float *y = hw_tensor_address(&op->y);
    (void)device, (void)queue;
    const int what = x[0] >= HANGS_OP && x[0] <= TAKES_LONGER ? (int)x[0] : 0;
    if (what == TAKES_LONG || what == TAKES_LONGER) {
        for (int i = 0; i < (what == TAKES_LONG ? 1 : MOMENTS); i++)
            usleep(MOMENT);
    } else if (what) {
        fputs("hangs: the last words\n", stderr);
        atomic_store(&hanging, what);
    }
    pass(HANGS_OP);
    for (int64_t i = 0; i < op->x.extent[0]; i++)
        y[i] = x[i] / (1.0f + expf(-x[i]));
    return HW_OK;
}

static int32_t wait_for_queue(void *queue)
{
    (void)queue;
    pass(HANGS_WAIT);
    return HW_OK;
}

static void close_queue(void *queue)
{
    (void)queue;
    pass(HANGS_QUEUE);
}

static void close_device(void *device)
{
    (void)device;
    pass(HANGS_DEVICE);
}

static void close_plugin(void *self)
{
    (void)self;
    pass(HANGS_CLOSE);
}

/* ---- events, which are complete when recorded ---- */

static int32_t event_create(void *device, uint32_t flags, void **event)
{
    (void)device, (void)flags;
    *event = calloc(1, 1);
    return *event ? HW_OK : HW_NO_MEMORY;
}

static void event_destroy(void *event)
{
    free(event);
}

static int32_t event_record(void *event, void *queue)
{
    (void)event, (void)queue;
    return HW_OK;
}

static int32_t event_wait(void *queue, void *event)
{
    (void)queue, (void)event;
    return HW_OK;
}

static int32_t event_sync(void *event)
{
    (void)event;
    pass(HANGS_EVENT);
    return HW_OK;
}

static int32_t event_query(void *event)
{
    (void)event;
    return HW_OK;
}

static const struct hw_plugin_ops ops = { .size = sizeof ops, .silu = silu };

static void change(struct hw_plugin *table)
{
    table->ops = &ops;
    table->close = close_plugin;
    table->device_close = close_device;
    table->queue_wait = wait_for_queue;
    table->queue_close = close_queue;
    table->event_create = event_create;
    table->event_destroy = event_destroy;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_sync = event_sync;
    table->event_query = event_query;
}
