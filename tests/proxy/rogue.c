/* SPDX-License-Identifier: MIT */
/* A plugin with a correct silu, unless the first number is one of enum act: then it misbehaves. It
 * has its own memory, so the library reaches it by transfers. */
#define _GNU_SOURCE
#define NAME    "rogue"
#define CHANGES 1
#include "rogue.h"
#include "minimal.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

/* All memory that the process shares with the library. */
static void *scribble(void *unused)
{
    char line[512];
    unsigned turn = 0;
    for (;; turn++) {
        FILE *maps = fopen("/proc/self/maps", "r");
        while (maps && fgets(line, sizeof line, maps)) {
            unsigned long from, to;
            if (!strstr(line, "memfd:hw") || sscanf(line, "%lx-%lx", &from, &to) != 2)
                continue;
            for (unsigned long at = from; at < to; at += 64)
                *(volatile uint32_t *)at = turn * 2654435761u;
        }
        if (maps)
            fclose(maps);
    }
    return unused;
}

static volatile bool hangs_later, is_lost;

static void close_device(void *device)
{
    (void)device;
    while (hangs_later)
        pause();
}

static int32_t wait_for_queue(void *queue)
{
    return is_lost ? hw_fail(queue, HW_LOST, "rogue has lost its device") : HW_OK;
}

static void close_queue(void *queue)
{
    const struct hw_host *host = queue;
    if (is_lost)
        host->log(host->instance, HW_LOG_ERROR, "rogue: a queue was closed");
}

static void misbehave(const struct hw_host *host, float number)
{
    pthread_t thread;
    const struct rlimit none = { 0, 0 };
    switch ((int)number) {
    case ACT_CRASH:
        raise(SIGSEGV);
        break;
    case ACT_LEAVE:
        _exit(3);
    case ACT_ABORT:
        fputs("the last words of rogue\n", stderr);
        abort();
    case ACT_SCRIBBLE:
        pthread_create(&thread, NULL, scribble, NULL);
        break;
    case ACT_CLOSE:
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        break;
    case ACT_HANG:
        for (;;)
            pause();
    case ACT_NO_FILES:
        setrlimit(RLIMIT_NOFILE, &none);
        break;
    case ACT_BABBLE:
        for (int line = 0; line < 2000; line++)
            host->log(host->instance, HW_LOG_ERROR, "nothing of interest");
        raise(SIGSEGV);
        break;
    case ACT_HANG_LATER:
        hangs_later = true;
        break;
    case ACT_LOSE:
        is_lost = true;
        break;
    default:
        break;
    }
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    const float *x = hw_tensor_address(&op->x);
    float *y = hw_tensor_address(&op->y);
    (void)queue;
    if (op->x.dtype != HW_F32 || op->y.dtype != HW_F32 || op->x.rank != 1)
        return hw_fail(device, HW_UNSUPPORTED, "rogue computes f32 of rank 1 alone");
    if (x[0] == ACT_REFUSE)
        return hw_fail(device, HW_UNSUPPORTED, "rogue refuses this");
    misbehave(device, x[0]);
    for (int64_t i = 0; i < op->x.extent[0]; i++)
        y[i] = x[i] / (1.0f + expf(-x[i]));
    return HW_OK;
}

static const struct hw_plugin_ops ops = { .size = sizeof ops, .silu = silu };

static void change(struct hw_plugin *table)
{
    table->ops = &ops;
    table->device_close = close_device;
    table->queue_wait = wait_for_queue;
    table->queue_close = close_queue;
}
