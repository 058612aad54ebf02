/* SPDX-License-Identifier: MIT */
/* threads.c - 64 threads that open contexts, rescan, compute and close them. */
#define _GNU_SOURCE
#include "soak.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_long left;
static struct hw_context *common; /* of all threads */

/* Rescans while a plugin comes and goes. Devices found before must stay. */
static void look_again(struct hw_context *own, long turn)
{
    if (turn % 32 == 0)
        rename(below("plugins/hw_titled.so"), below("titled"));
    else if (turn % 32 == 16)
        rename(below("titled"), below("plugins/hw_titled.so"));
    if (hw_rescan(own) || hw_rescan(common))
        die("hw_rescan: %s", hw_message());
    if (!has_good(common) || hw_device_at(common, 0) == NULL ||
        !hw_explain(common, NULL, 0))
        die("the good plugin is not used any more: %s", hw_message());
}

/* The CPU plugin computes, if it was built. */
static void *open_and_compute(void *path)
{
    for (long turn; (turn = atomic_fetch_sub(&left, 1)) > 0;) {
        struct hw_context *context;
        struct hw_queue *queue;
        float x[5] = { -2, -1, 0, 1, 2 }, y[5];
        if (open_on(path, &context))
            die("hw_open: %s", hw_message());
        if (!has_good(context))
            die("the good plugin was not used: %s", hw_message());
        look_again(context, turn);
        struct hw_device *device;
        if (!hw_device_find(context, "cpu:0", &device)) {
            if (hw_queue_open(device, NULL, &queue) ||
                hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 5),
                                                  .y = hw_host_1d(y, HW_F32, 5) }) ||
                hw_queue_wait(queue) || y[2] != 0 || y[4] < 1.76f || y[4] > 1.77f)
                die("silu: %s", hw_message());
            hw_queue_close(queue);
        }
        hw_close(context);
    }
    return NULL;
}

void soak_threads(long count)
{
    enum { THREADS = 64 };
    char *path = NULL;
    pthread_t thread[THREADS];
    put_good("plugins");
    copy_file(FIXTURES "/hw_titled.so", below("titled"), 0755);
    if (asprintf(&path, "%s:%s", below("plugins"), PLUGINS) < 0)
        die("out of memory");
    for (int round = 0; round < 2; round++) { /* the first one warms up */
        const struct host before = host_now();
        const double start = seconds();
        if (open_on(path, &common))
            die("hw_open: %s", hw_message());
        atomic_store(&left, round ? count : THREADS);
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&thread[i], NULL, open_and_compute, path))
                die("a thread cannot be started");
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        hw_close(common);
        const struct host after = host_now();
        if (before.descriptors != after.descriptors)
            die("descriptors %d, then %d", before.descriptors, after.descriptors);
        if (round)
            printf(
                "threads: %d, %ld contexts in %.1f s; descriptors %d, resident %ld KiB, then "
                "%ld\n",
                THREADS, count, seconds() - start, after.descriptors, before.resident,
                after.resident);
    }
    free(path);
}
