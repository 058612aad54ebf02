/* SPDX-License-Identifier: MIT */
/* swap.c - contexts opened while the plugin's file is replaced all the time, by one that must not
 * be loaded and back. */
#define _GNU_SOURCE
#include "soak.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_bool swapping;

/* Two files whose links take turns as the plugin; the good one is there at first. */
static void *swap_files(void *count)
{
    static const char *const names[] = { "marked", "good" };
    for (long i = 0; i < *(long *)count; i++)
        if (link(below("%s", names[i & 1]), below("part")) ||
            rename(below("part"), below("plugins/hw_good.so")))
            die("the plugin cannot be replaced");
    atomic_store(&swapping, false);
    return NULL;
}

void soak_swap(long count)
{
    pthread_t thread;
    long opened = 0, good = 0;
    make_directory(below("plugins"));
    copy_file(FIXTURES "/hw_good.so", below("good"), 0755);
    copy_file(SOAK_FIXTURES "/hw_marked.so", below("marked"), 0666);
    if (link(below("good"), below("plugins/hw_good.so")))
        die("no hard links in %s", root);
    atomic_store(&swapping, true);
    if (pthread_create(&thread, NULL, swap_files, &count))
        die("a thread cannot be started");
    const double start = seconds();
    while (atomic_load(&swapping)) {
        struct hw_context *context;
        if (open_on(below("plugins"), &context))
            die("hw_open: %s", hw_message());
        opened++;
        good += has_good(context);
        hw_close(context);
        if (getenv("SOAK_MARKED"))
            die("the file that others can write to was loaded");
    }
    pthread_join(thread, NULL);
    printf(
        "swap: %ld swaps, %ld contexts opened meanwhile in %.1f s, the good file used in %ld\n",
        count, opened, seconds() - start, good);
}
