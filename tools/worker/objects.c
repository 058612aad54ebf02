/* SPDX-License-Identifier: MIT */
/* objects.c - numbers that stand for pointers. */
#include "server.h"

#include <stdlib.h>

static bool make_room(struct objects *objects)
{
    if (objects->count < objects->room)
        return true;
    const uint32_t room = objects->room ? 2 * objects->room : 64;
    void **list = realloc(objects->list, room * sizeof *list);
    if (!list)
        return false;
    objects->list = list;
    objects->room = room;
    return true;
}

uint32_t objects_add(struct objects *objects, void *object)
{
    uint32_t i = 0;
    pthread_mutex_lock(&objects->lock);
    while (i < objects->count && objects->list[i])
        i++;
    const bool good = i < objects->count || make_room(objects);
    if (good) {
        objects->list[i] = object;
        objects->count += i == objects->count;
    }
    pthread_mutex_unlock(&objects->lock);
    return good ? i + 1 : 0;
}

void *objects_find(struct objects *objects, uint32_t number)
{
    pthread_mutex_lock(&objects->lock);
    void *object = number - 1 < objects->count ? objects->list[number - 1] : NULL;
    pthread_mutex_unlock(&objects->lock);
    return object;
}

void *objects_remove(struct objects *objects, uint32_t number)
{
    pthread_mutex_lock(&objects->lock);
    void *object = number - 1 < objects->count ? objects->list[number - 1] : NULL;
    if (object)
        objects->list[number - 1] = NULL;
    pthread_mutex_unlock(&objects->lock);
    return object;
}
