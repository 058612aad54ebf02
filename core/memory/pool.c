/* SPDX-License-Identifier: MIT */
/* pool.c - one pool per device: large pieces of the device's memory, split into blocks and
 * joined again, so that the driver is called rarely. A chunk is one allocation of the
 * plugin's buffer_alloc(). Its blocks are in a list by address; free blocks are also in the
 * list of their kind. Chunks differ by flags, and large requests get chunks of their own,
 * so that a small buffer never keeps a large chunk allocated. Allocation is best fit. A
 * large block is used only if at most an eighth of the request is left over, or if there is
 * no other memory, because the rest could not be returned to the device. The pool returns idle
 * chunks to the device so that they stay a small part of the memory in use. The host clears zeroed
 * memory if the memory has a host address. Otherwise only the device can clear it, when it
 * allocates a chunk, so such a chunk lives as long as its buffer. */
#include "memory/pool.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "base/text.h"
#include "memory/buffer.h"
#include "memory/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (UINT64_C(4) << 20) /* the size of chunks for small requests */
/* From this size on, a request gets a chunk of its own. */
#define LARGE_BYTES (UINT64_C(1) << 20)
/* The pool may hold this many idle bytes, or this fraction of the peak, whichever is larger. */
#define SPARE_BYTES (UINT64_C(32) << 20)
#define SPARE_PART  12

struct chunk {
    struct hw_buffer memory;
    struct kind *kind;
    bool once; /* freed with its buffer */
    struct block *first;
    struct chunk *next, *prev;
};

/* Chunks with the same flags and size class. */
struct kind {
    uint32_t flags;
    bool large;
    bool visible; /* the host has an address for the last chunk */
    struct block *free;
    struct kind *next;
};

struct pool {
    struct hw_device *device;
    pthread_mutex_t lock;
    struct chunk *chunks;
    struct kind *kinds;
    struct buffer *later; /* buffers that queues may still use */
    struct hw_pool_stats stats;
};

enum hw_status pool_create(struct hw_device *device, struct pool **pool)
{
    struct pool *p = calloc(1, sizeof *p);
    *pool = p;
    if (!p)
        return fail(HW_NO_MEMORY, "out of memory for the pool of %s", device->name);
    p->device = device;
    p->stats.limit = device->context->settings.memory_limit;
    pthread_mutex_init(&p->lock, NULL);
    return HW_OK;
}

/* ---- chunks ---- */

static void free_add(struct block *block)
{
    struct kind *kind = block->chunk->kind;
    block->used = false;
    list_add(&kind->free, block);
}

static void free_remove(struct block *block)
{
    list_remove(&block->chunk->kind->free, block);
}

static void chunk_free(struct pool *pool, struct chunk *chunk)
{
    while (chunk->first) {
        struct block *block = chunk->first;
        chunk->first = block->after;
        if (!block->used)
            free_remove(block);
        free(block);
    }
    list_remove(&pool->chunks, chunk);
    pool->stats.held -= chunk->memory.bytes;
    pool->device->plugin->table.buffer_free(pool->device->impl, &chunk->memory);
    free(chunk);
}

/* Frees idle chunks, the oldest first, until the pool holds at most `most` bytes. */
static void trim(struct pool *pool, uint64_t most)
{
    struct chunk *chunk = pool->chunks;
    while (chunk && chunk->next)
        chunk = chunk->next;
    for (struct chunk *prev; chunk && pool->stats.held > most; chunk = prev) {
        prev = chunk->prev;
        if (!chunk->first->used && !chunk->first->after)
            chunk_free(pool, chunk);
    }
}

/* Frees idle chunks before a chunk of `bytes` bytes is added, so that the pool does not hold much
 * more than is used. */
static void shed(struct pool *pool, uint64_t bytes)
{
    const uint64_t now = pool->stats.used + bytes;
    const uint64_t peak = now > pool->stats.peak ? now : pool->stats.peak;
    const uint64_t part = peak / SPARE_PART;
    const uint64_t most = peak + (part > SPARE_BYTES ? part : SPARE_BYTES);
    trim(pool, most > bytes ? most - bytes : 0);
}

static struct kind *kind_of(struct pool *pool, uint32_t flags, bool large)
{
    struct kind *kind = pool->kinds;
    while (kind && (kind->flags != flags || kind->large != large))
        kind = kind->next;
    if (!kind && (kind = calloc(1, sizeof *kind))) {
        kind->flags = flags;
        kind->large = large;
        kind->next = pool->kinds;
        pool->kinds = kind;
    }
    return kind;
}

static uint64_t grain(const struct pool *pool)
{
    return pool->device->info.buffer_alignment;
}

/* The largest buffer of the device, in whole grains. */
static uint64_t largest(const struct pool *pool)
{
    const uint64_t max = pool->device->info.buffer_max;
    return (max ? max : UINT64_MAX) / grain(pool) * grain(pool);
}

static bool over_limit(const struct pool *pool, uint64_t more)
{
    return pool->stats.limit && (pool->stats.held > pool->stats.limit ||
                                 more > pool->stats.limit - pool->stats.held);
}

/* The error for a request above the limit; the caller adds the name of the device. */
static enum hw_status refuse(const struct pool *pool, uint64_t bytes)
{
    return fail(HW_NO_MEMORY,
                "%s requested; the limit is %s, of which %s are allocated and %s in use "
                "(HW_MEMORY_LIMIT sets it)",
                size_text(bytes).text, size_text(pool->stats.limit).text,
                size_text(pool->stats.held).text, size_text(pool->stats.used).text);
}

/* Calls buffer_alloc(), whose message says how much memory of the device is free. */
static enum hw_status ask_device(struct pool *pool, uint64_t bytes, uint32_t flags,
                                 struct hw_buffer *memory)
{
    struct hw_device *device = pool->device;
    *memory = (struct hw_buffer){ .device = device->impl, .bytes = bytes, .flags = flags };
    plugin_message_clear();
    int32_t status = device->plugin->table.buffer_alloc(device->impl, bytes, flags, memory);
    if (status)
        return fail_in(device_result(device, status),
                       "%s: %s requested, %s allocated by this process%s%s: ", device->name,
                       size_text(bytes).text, size_text(pool->stats.held).text,
                       pool->stats.limit ? ", the limit is " : "",
                       pool->stats.limit ? size_text(pool->stats.limit).text : "");
    /* The fields that the host sets. */
    memory->device = device->impl;
    memory->offset = 0;
    memory->bytes = bytes;
    memory->flags |= flags | (memory->host ? HW_BUFFER_HOST_VISIBLE : 0u);
    if (memory->flags & HW_BUFFER_HOST_VISIBLE && !memory->host) {
        device->plugin->table.buffer_free(device->impl, memory);
        return fail(HW_INTERNAL,
                    "%s: plugin %s allocated host-visible memory without an address",
                    device->name, device->plugin->table.name);
    }
    if ((uintptr_t)memory->host % grain(pool)) {
        device->plugin->table.buffer_free(device->impl, memory);
        return fail(HW_INTERNAL,
                    "%s: plugin %s allocated memory at %p, which is not a multiple of "
                    "%" PRIu64,
                    device->name, device->plugin->table.name, memory->host, grain(pool));
    }
    return HW_OK;
}

/* Makes a chunk of one free block. The caller has checked the limit. */
static enum hw_status chunk_make(struct pool *pool, struct kind *kind, uint64_t bytes,
                                 uint32_t flags, struct block **block)
{
    shed(pool, bytes);
    struct chunk *chunk = calloc(1, sizeof *chunk);
    struct block *whole = calloc(1, sizeof *whole);
    enum hw_status status = chunk && whole
                                ? ask_device(pool, bytes, flags, &chunk->memory)
                                : fail(HW_NO_MEMORY, "out of memory for a buffer");
    if (status) {
        free(chunk);
        free(whole);
        return status;
    }
    chunk->kind = kind;
    kind->visible = chunk->memory.host != NULL;
    chunk->once = flags & HW_BUFFER_ZEROED && !kind->visible;
    chunk->first = whole;
    list_add(&pool->chunks, chunk);
    pool->stats.held += bytes;
    whole->chunk = chunk;
    whole->length = bytes;
    free_add(whole);
    *block = whole;
    return HW_OK;
}

/* Allocates a chunk of the usual size. If that fails, tries the requested size. If that fails, too,
 * frees idle chunks and tries the requested size again. */
static enum hw_status grow(struct pool *pool, struct kind *kind, uint64_t bytes,
                           uint32_t flags, struct block **block)
{
    enum hw_status status;
    if (!kind->large && !over_limit(pool, CHUNK_BYTES) && CHUNK_BYTES <= largest(pool) &&
        (kind->visible || !(flags & HW_BUFFER_ZEROED))) {
        status = chunk_make(pool, kind, CHUNK_BYTES, flags, block);
        if (status != HW_NO_MEMORY)
            return status;
    }
    if (!over_limit(pool, bytes)) {
        status = chunk_make(pool, kind, bytes, flags, block);
        if (status != HW_NO_MEMORY)
            return status;
    }
    trim(pool, 0);
    if (over_limit(pool, bytes))
        return fail_in(refuse(pool, bytes), "%s: ", pool->device->name);
    return chunk_make(pool, kind, bytes, flags, block);
}

enum hw_status pool_count(struct pool *pool, int64_t bytes)
{
    enum hw_status status = HW_OK;
    pthread_mutex_lock(&pool->lock);
    if (bytes > 0 && over_limit(pool, (uint64_t)bytes))
        trim(pool, 0);
    if (bytes > 0 && over_limit(pool, (uint64_t)bytes))
        status = refuse(pool, (uint64_t)bytes);
    else {
        pool->stats.held += (uint64_t)bytes;
        pool->stats.used += (uint64_t)bytes;
    }
    if (pool->stats.used > pool->stats.peak)
        pool->stats.peak = pool->stats.used;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- blocks ---- */

/* The smallest free block of `bytes` to `most` bytes; with `zeroed`, a block that the host can
 * clear. */
static struct block *best_fit(const struct kind *kind, uint64_t bytes, uint64_t most,
                              bool zeroed)
{
    struct block *best = NULL;
    for (struct block *block = kind->free; block; block = block->next)
        if (block->length >= bytes && block->length <= most &&
            (!best || block->length < best->length) &&
            (!zeroed || block->chunk->memory.host))
            best = block;
    return best;
}

/* Makes the rest after the first `bytes` bytes a block of its own. If out of memory, the block
 * stays whole. */
static void split(struct block *block, uint64_t bytes)
{
    struct block *rest = block->length > bytes ? calloc(1, sizeof *rest) : NULL;
    if (!rest)
        return;
    rest->chunk = block->chunk;
    rest->offset = block->offset + bytes;
    rest->length = block->length - bytes;
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->length = bytes;
    free_add(rest);
}

/* Merges `block` with the free block after it. */
static void join(struct block *block)
{
    struct block *after = block->after;
    free_remove(after);
    block->length += after->length;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    free(after);
}

static void give(struct pool *pool, struct block *block)
{
    struct chunk *chunk = block->chunk;
    pool->stats.used -= block->length;
    pool->stats.buffers--;
    free_add(block);
    if (block->after && !block->after->used)
        join(block);
    if (block->before && !block->before->used)
        join(block->before);
    if (chunk->once && !chunk->first->used && !chunk->first->after)
        chunk_free(pool, chunk);
}

void pool_give(struct pool *pool, struct block *block)
{
    pthread_mutex_lock(&pool->lock);
    give(pool, block);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- buffers freed in a queue's order ---- */

/* Removes the buffer, which nothing uses any more, from the list and frees it. */
static void drop(struct pool *pool, struct buffer **at)
{
    const struct hw_plugin *table = &pool->device->plugin->table;
    struct buffer *buffer = *at;
    *at = buffer->next;
    device_changed(pool->device);
    table->event_destroy(buffer->mark);
    if (buffer->block)
        give(pool, buffer->block);
    else
        table->buffer_free(pool->device->impl, &buffer->base);
    free(buffer);
}

/* Frees the buffers whose events have completed or, with `wait`, waits and frees all of them.
 * Returns whether it freed any. If querying the event fails, a buffer stays until its queue is
 * waited for. */
static bool collect(struct pool *pool, bool wait)
{
    const struct hw_plugin *table = &pool->device->plugin->table;
    bool any = false;
    for (struct buffer **at = &pool->later; *at;) {
        void *mark = (*at)->mark;
        if (wait ? table->event_sync(mark) : table->event_query(mark)) {
            at = &(*at)->next;
            continue;
        }
        drop(pool, at);
        any = true;
    }
    plugin_message_clear(); /* their errors do not matter */
    return any;
}

void pool_give_after(struct pool *pool, struct buffer *buffer)
{
    pthread_mutex_lock(&pool->lock);
    buffer->next = pool->later;
    pool->later = buffer;
    if (pool->device->plugin->table.event_query(buffer->mark) == HW_OK)
        drop(pool, &pool->later);
    pthread_mutex_unlock(&pool->lock);
}

void pool_passed(struct pool *pool, const struct hw_queue *queue)
{
    pthread_mutex_lock(&pool->lock);
    for (struct buffer **at = &pool->later; *at;)
        if ((*at)->after == queue)
            drop(pool, at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- taking ---- */

struct request {
    struct kind *kind;
    uint64_t bytes;
    uint32_t flags;
};

static struct block *fit(const struct request *r, bool wasteful)
{
    const uint64_t most = r->kind->large && !wasteful && r->bytes < UINT64_MAX / 2
                              ? r->bytes + r->bytes / 8
                              : UINT64_MAX;
    return best_fit(r->kind, r->bytes, most, r->flags & HW_BUFFER_ZEROED);
}

/* Finds a free block. With `pressed`, accepts any block, and waits for buffers that queues still
 * use. */
static struct block *idle(struct pool *pool, const struct request *r, bool pressed)
{
    struct block *block = fit(r, pressed);
    return block || !collect(pool, pressed) ? block : fit(r, pressed);
}

/* Finds or allocates a block. Sets `*used` if the memory has been used before. */
static enum hw_status find(struct pool *pool, const struct request *r, struct block **found,
                           bool *used)
{
    const uint64_t buffers = pool->stats.buffers;
    if ((*used = (*found = idle(pool, r, false))))
        return HW_OK;
    const struct saved_message saved = message_save(); /* errors on the way do not matter */
    enum hw_status status = grow(pool, r->kind, r->bytes, r->flags, found);
    if (status == HW_NO_MEMORY) {
        if ((*used = (*found = idle(pool, r, true))))
            status = HW_OK;
        else if (pool->stats.buffers < buffers) /* there may be room for a chunk now */
            status = grow(pool, r->kind, r->bytes, r->flags, found);
    }
    if (!status)
        message_restore(&saved);
    return status;
}

static enum hw_status take(struct pool *pool, uint64_t bytes, uint32_t flags,
                           struct block **block, bool *used)
{
    const struct request r = { .kind = kind_of(pool, flags & ~(uint32_t)HW_BUFFER_ZEROED,
                                               bytes >= LARGE_BYTES),
                               .bytes = bytes,
                               .flags = flags };
    struct block *found;
    if (!r.kind)
        return fail(HW_NO_MEMORY, "out of memory for a buffer");
    pool->stats.requests++;
    const enum hw_status status = find(pool, &r, &found, used);
    if (status)
        return status;
    pool->stats.hits += *used;
    free_remove(found);
    found->used = true;
    split(found, bytes);
    pool->stats.used += found->length;
    pool->stats.buffers++;
    if (pool->stats.used > pool->stats.peak)
        pool->stats.peak = pool->stats.used;
    *block = found;
    return HW_OK;
}

enum hw_status pool_take(struct pool *pool, uint64_t bytes, uint32_t flags,
                         struct block **out)
{
    const uint64_t most = largest(pool), step = grain(pool);
    if (bytes > most)
        return fail(HW_NO_MEMORY, "%s: %s requested; its largest buffer has %s",
                    pool->device->name, size_text(bytes).text, size_text(most).text);
    const uint64_t whole = ((bytes ? bytes : 1) + step - 1) / step * step;
    struct block *block = NULL;
    bool used = false;
    pthread_mutex_lock(&pool->lock);
    enum hw_status status = take(pool, whole, flags, &block, &used);
    pthread_mutex_unlock(&pool->lock);
    if (status)
        return status;
    if (used && flags & HW_BUFFER_ZEROED)
        memset((char *)block->chunk->memory.host + block->offset, 0, (size_t)block->length);
    *out = block;
    return HW_OK;
}

const struct hw_buffer *block_memory(const struct block *block)
{
    return &block->chunk->memory;
}

void pool_destroy(struct pool *pool)
{
    while (pool->chunks)
        chunk_free(pool, pool->chunks);
    while (pool->kinds) {
        struct kind *kind = pool->kinds;
        pool->kinds = kind->next;
        free(kind);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- for applications ---- */

enum hw_status hw_pool_stats(struct hw_device *device, struct hw_pool_stats *stats)
{
    REQUIRE(device);
    REQUIRE(stats);
    enum hw_status status = check_size(__func__, "stats", stats, 2 * sizeof(uint32_t));
    if (status || (status = guard(device->context->generation)) ||
        (status = device_wake(device)))
        return status;
    const uint32_t size = stats->size < sizeof *stats ? stats->size
                                                      : (uint32_t)sizeof *stats;
    pthread_mutex_lock(&device->pool->lock);
    collect(device->pool, false);
    memcpy(stats, &device->pool->stats, size);
    pthread_mutex_unlock(&device->pool->lock);
    stats->size = size;
    return HW_OK;
}

enum hw_status hw_pool_trim(struct hw_device *device)
{
    REQUIRE(device);
    enum hw_status status = guard(device->context->generation);
    if (status || (status = device_wake(device)))
        return status;
    pthread_mutex_lock(&device->pool->lock);
    collect(device->pool, false);
    trim(device->pool, 0);
    pthread_mutex_unlock(&device->pool->lock);
    return HW_OK;
}
