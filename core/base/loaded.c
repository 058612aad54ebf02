/* SPDX-License-Identifier: MIT */
/* loaded.c - the libraries that are loaded in the process: see loaded.h. */
#define _GNU_SOURCE
#include "base/loaded.h"

#include <pthread.h>

static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&looking);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&looking);
}

static void watch(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

int loaded_each(int (*see)(struct dl_phdr_info *info, size_t size, void *user), void *user)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    pthread_mutex_lock(&looking);
    const int answer = dl_iterate_phdr(see, user);
    pthread_mutex_unlock(&looking);
    return answer;
}
