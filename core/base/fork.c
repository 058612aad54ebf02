/* SPDX-License-Identifier: MIT */
/* fork.c - a context belongs to one process: see fork.h. */
#define _POSIX_C_SOURCE 200809L
#include "base/fork.h"

#include "base/message.h"

#include <pthread.h>

_Atomic uint32_t process_generation;

static void in_child(void)
{
    atomic_fetch_add_explicit(&process_generation, 1, memory_order_relaxed);
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

uint32_t watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    return atomic_load_explicit(&process_generation, memory_order_relaxed);
}

enum hw_status guard(uint32_t generation)
{
    if (!forked(generation))
        return HW_OK;
    return fail(
        HW_FORKED,
        "this context was opened before fork(), which drivers do not survive; open another "
        "one in this process");
}
