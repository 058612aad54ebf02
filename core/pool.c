/* SPDX-License-Identifier: MIT */
/* pool.c - a device's memory: few large pieces from the plugin, cut into buffers here.
 *
 * A piece (slab) is a list of blocks in address order. The smallest free block that fits is
 * taken, its rest cut off; a block given back joins its free neighbours. Slabs serve one kind
 * of memory each. Any thread. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN     256u          /* what sizes are rounded up to, and what blocks start at */
#define SLAB      (16u << 20)   /* what is asked of the device at least, if it has that much */
#define SLAB_LEAST (1u << 16)   /* what is asked for when a whole slab is refused */
#define KINDS     (HW_BUFFER_HOST_VISIBLE | HW_BUFFER_PINNED) /* what tells memory apart */

struct block {
    struct slab *slab;
    struct block *next, *previous; /* by address */
    uint64_t offset, bytes;
    bool used;
};

struct slab {
    struct hw_buffer memory;
    uint32_t kind;
    struct block *first;
    struct slab *next;
};

struct pool {
    struct hw_device *device;
    pthread_mutex_t lock;
    struct slab *slabs;
    struct hw_pool_stats stats;
};

/* ---- slabs ---- */

static struct block *block_create(struct slab *slab, uint64_t offset, uint64_t bytes)
{
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->slab = slab;
    block->offset = offset;
    block->bytes = bytes;
    return block;
}

static void slab_destroy(struct pool *pool, struct slab *slab)
{
    if (slab->memory.impl) {
        pool->device->plugin->table.buffer_free(pool->device->impl, &slab->memory);
        pool->stats.held -= slab->memory.bytes;
    }
    while (slab->first) {
        struct block *block = slab->first;
        slab->first = block->next;
        free(block);
    }
    free(slab);
}

static bool slab_is_free(const struct slab *slab)
{
    return !slab->first->used && !slab->first->next;
}

static void drop_free_slabs(struct pool *pool)
{
    for (struct slab **link = &pool->slabs; *link;) {
        struct slab *slab = *link;
        if (slab_is_free(slab)) {
            *link = slab->next;
            slab_destroy(pool, slab);
        } else {
            link = &slab->next;
        }
    }
}

static enum hw_status slab_create(struct pool *pool, uint64_t bytes, uint32_t kind)
{
    struct hw_device *device = pool->device;
    struct slab *slab = calloc(1, sizeof *slab);
    if (!slab || !(slab->first = block_create(slab, 0, bytes))) {
        free(slab);
        return fail(HW_NO_MEMORY, "out of memory for the pool of %s", device->name);
    }
    fail(HW_OK, "no reason given");
    int32_t status = device->plugin->table.buffer_alloc(device->impl, bytes, kind,
                                                        &slab->memory);
    if (!status && !slab->memory.impl)
        status = fail(HW_INTERNAL, "%s: its plugin allocated nothing and said HW_OK",
                      device->name);
    if (status) {
        slab->memory.impl = NULL;
        slab_destroy(pool, slab);
        return (enum hw_status)status;
    }
    slab->memory.bytes = bytes;
    slab->memory.device = device->impl;
    slab->kind = kind;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->stats.held += bytes;
    return HW_OK;
}

/* ---- blocks ---- */

static struct block *best_fit(struct pool *pool, uint64_t bytes, uint32_t kind)
{
    struct block *best = NULL;
    for (struct slab *slab = pool->slabs; slab; slab = slab->next) {
        if (slab->kind != kind)
            continue;
        for (struct block *b = slab->first; b; b = b->next)
            if (!b->used && b->bytes >= bytes && (!best || b->bytes < best->bytes))
                best = b;
    }
    return best;
}

/* Cuts off what is more than `bytes`; if there is no memory for that, the block stays whole. */
static void split(struct block *block, uint64_t bytes)
{
    if (block->bytes == bytes)
        return;
    struct block *rest = block_create(block->slab, block->offset + bytes,
                                      block->bytes - bytes);
    if (!rest)
        return;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next)
        rest->next->previous = rest;
    block->next = rest;
    block->bytes = bytes;
}

static void join_next(struct block *block)
{
    struct block *next = block->next;
    if (!next || next->used)
        return;
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next)
        block->next->previous = block;
    free(next);
}

/* ---- growing ---- */

static enum hw_status over_limit(const struct pool *pool, uint64_t bytes)
{
    return fail(HW_NO_MEMORY,
                "%s: %llu bytes asked for, %llu held, and the memory limit is %llu: raise "
                "HW_MEMORY_LIMIT, or free buffers",
                pool->device->name, (unsigned long long)bytes,
                (unsigned long long)pool->stats.held,
                (unsigned long long)pool->stats.limit);
}

static enum hw_status no_memory(const struct pool *pool, uint64_t bytes,
                                enum hw_status status)
{
    struct hw_device_info info = { .size = sizeof info };
    struct hw_device *device = pool->device;
    if (status != HW_NO_MEMORY ||
        device->plugin->table.device_info(device->plugin->self, device->index, &info))
        return fail_in(status, "%s: allocate %llu bytes: ", device->name,
                       (unsigned long long)bytes);
    return fail_in(status, "%s: allocate %llu bytes, of %llu free: ", device->name,
                   (unsigned long long)bytes, (unsigned long long)info.memory_free);
}

/* A slab for `bytes`: a large one for many buffers, or, where that is too much, just enough. */
static enum hw_status grow(struct pool *pool, uint64_t bytes, uint32_t kind)
{
    uint64_t size = bytes < SLAB / 2 ? SLAB : bytes;
    const uint64_t limit = pool->stats.limit;
    if (limit && (pool->stats.held > limit || size > limit - pool->stats.held)) {
        drop_free_slabs(pool);
        if (pool->stats.held > limit || bytes > limit - pool->stats.held)
            return over_limit(pool, bytes);
        if (size > limit - pool->stats.held)
            size = bytes;
    }
    enum hw_status status = slab_create(pool, size, kind);
    if (status == HW_NO_MEMORY) {
        drop_free_slabs(pool);
        status = slab_create(pool, bytes < SLAB_LEAST && !limit ? SLAB_LEAST : bytes, kind);
    }
    return status ? no_memory(pool, bytes, status) : HW_OK;
}

static enum hw_status take_locked(struct pool *pool, uint64_t bytes, uint32_t kind,
                                  struct block **out)
{
    struct block *block = best_fit(pool, bytes, kind);
    pool->stats.requests++;
    if (block) {
        pool->stats.hits++;
    } else {
        enum hw_status status = grow(pool, bytes, kind);
        if (status)
            return status;
        block = best_fit(pool, bytes, kind);
    }
    split(block, bytes);
    block->used = true;
    pool->stats.buffers++;
    pool->stats.used += block->bytes;
    if (pool->stats.used > pool->stats.peak)
        pool->stats.peak = pool->stats.used;
    *out = block;
    return HW_OK;
}

/* ---- for buffer.c and registry.c ---- */

enum hw_status pool_take(struct pool *pool, uint64_t bytes, uint32_t flags,
                         struct hw_buffer *buffer, struct block **block)
{
    if (bytes > INT64_MAX - GRAIN)
        return fail(HW_NO_MEMORY, "%s: %llu bytes is more than any device has",
                    pool->device->name, (unsigned long long)bytes);
    const uint64_t rounded = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    pthread_mutex_lock(&pool->lock);
    enum hw_status status = take_locked(pool, rounded ? rounded : GRAIN, flags & KINDS,
                                        block);
    pthread_mutex_unlock(&pool->lock);
    if (status)
        return status;
    *buffer = (*block)->slab->memory;
    buffer->offset += (*block)->offset;
    buffer->host = buffer->host ? (char *)buffer->host + (*block)->offset : NULL;
    buffer->bytes = bytes;
    buffer->flags = flags;
    return HW_OK;
}

void pool_give(struct pool *pool, struct block *block)
{
    pthread_mutex_lock(&pool->lock);
    pool->stats.used -= block->bytes;
    pool->stats.buffers--;
    block->used = false;
    join_next(block);
    if (block->previous && !block->previous->used)
        join_next(block->previous);
    pthread_mutex_unlock(&pool->lock);
}

enum hw_status pool_create(struct hw_device *device, struct pool **out)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return fail(HW_NO_MEMORY, "out of memory for the pool of %s", device->name);
    pool->device = device;
    pool->stats.limit = device->context->settings.memory_limit;
    pthread_mutex_init(&pool->lock, NULL);
    *out = pool;
    return HW_OK;
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    while (pool->slabs) {
        struct slab *slab = pool->slabs;
        pool->slabs = slab->next;
        slab_destroy(pool, slab);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- for applications ---- */

enum hw_status hw_pool_stats(struct hw_device *device, struct hw_pool_stats *stats)
{
    if (!device || !stats || stats->size < 2 * sizeof(uint32_t))
        return fail(HW_INVALID, "hw_pool_stats: device and stats may not be NULL, and "
                                "stats->size is sizeof *stats");
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    const uint32_t size = stats->size < sizeof *stats ? stats->size
                                                      : (uint32_t)sizeof *stats;
    pthread_mutex_lock(&device->pool->lock);
    struct hw_pool_stats now = device->pool->stats;
    pthread_mutex_unlock(&device->pool->lock);
    now.size = size;
    memcpy(stats, &now, size);
    return HW_OK;
}

enum hw_status hw_pool_trim(struct hw_device *device)
{
    if (!device)
        return fail(HW_INVALID, "hw_pool_trim: device may not be NULL");
    enum hw_status status = guard(device->context);
    if (status || (status = device_wake(device)))
        return status;
    pthread_mutex_lock(&device->pool->lock);
    drop_free_slabs(device->pool);
    pthread_mutex_unlock(&device->pool->lock);
    return HW_OK;
}
