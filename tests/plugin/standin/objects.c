/* SPDX-License-Identifier: MIT */
/* objects.c - see objects.h. */
#include "objects.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const void **objects;
static int living, room;

void objects_add(const void *object)
{
    pthread_mutex_lock(&lock);
    if (living == room) {
        room = room ? 2 * room : 64;
        objects = realloc(objects, (size_t)room * sizeof *objects);
        if (!objects)
            abort();
    }
    objects[living++] = object;
    pthread_mutex_unlock(&lock);
}

bool objects_remove(const void *object)
{
    pthread_mutex_lock(&lock);
    int i = living - 1;
    while (i >= 0 && objects[i] != object)
        i--;
    if (i >= 0)
        objects[i] = objects[--living];
    pthread_mutex_unlock(&lock);
    return i >= 0;
}

int objects_count(void)
{
    pthread_mutex_lock(&lock);
    const int count = living;
    pthread_mutex_unlock(&lock);
    return count;
}
