/* SPDX-License-Identifier: MIT */
/* deadly.c - a plugin that ends the process, hangs or prints while it starts, or when its op is
 * called: whatever the variable DEADLY asks for. Without it, a whole plugin. */
#define NAME "deadly"
#define CHANGES
#define _DEFAULT_SOURCE
#include "minimal.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int32_t meet(const char *place)
{
    const char *wish = getenv("DEADLY");
    const size_t length = strlen(place);
    volatile int *volatile nowhere = NULL;

    if (!wish || strncmp(wish, place, length) || wish[length] != ':')
        return HW_OK;
    wish += length + 1;
    if (!strcmp(wish, "segv"))
        raise(SIGSEGV);
    else if (!strcmp(wish, "fault"))
        *nowhere = 1;
    else if (!strcmp(wish, "abort"))
        abort();
    else if (!strcmp(wish, "exit"))
        exit(0);
    else if (!strcmp(wish, "hang"))
        for (fputs("deadly: hanging\n", stderr);;)
            pause();
    else if (!strcmp(wish, "sleep"))
        sleep(4);
    else if (!strcmp(wish, "print"))
        printf("hello from a driver\n");
    return HW_OK;
}

static int32_t deadly_open(const struct hw_host *host, void **self)
{
    *self = (void *)(uintptr_t)host;
    return meet("open");
}

static int32_t deadly_silu(void *device, void *queue, const struct hw_silu *op)
{
    (void)device, (void)queue, (void)op;
    return meet("silu");
}

static int32_t deadly_queue(void *device, const struct hw_queue_desc *desc, void **queue)
{
    const int32_t status = meet("queue");
    return status ? status : plugin_queue(device, desc, queue);
}

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops, .silu = deadly_silu };
    table->open = deadly_open;
    table->queue_open = deadly_queue;
    table->ops = &ops;
}
