/* SPDX-License-Identifier: MIT */
/* pool.c - one pool per device: large pieces of the device's memory, split into blocks and
 * joined again, so that the driver is called rarely. A chunk is one allocation of the
 * plugin's buffer_alloc(). Its blocks are in a list by address; free blocks are also in the
 * pool's list. Chunks differ by flags, and large requests get chunks of their own,
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
    uint32_t flags; /* of the requests that it serves, without HW_BUFFER_ZEROED */
    bool large;     /* it serves large requests */
    bool once;      /* freed with its buffer */
    struct block *first;
    struct chunk *next, *prev;
};

struct pool {
    struct hw_device *device;
    pthread_mutex_t lock;
    struct chunk *chunks; /* the latest first */
    struct block *free;
    struct buffer *later; /* buffers that queues may still use */
    struct hw_pool_stats stats;
};

/* Memory that is asked for. */
struct request {
    uint64_t bytes; /* whole grains */
    uint32_t flags;
    bool zeroed; /* not in `flags` */
    bool large;
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

static void chunk_free(struct pool *pool, struct chunk *chunk)
{
    while (chunk->first) {
        struct block *block = chunk->first;
        chunk->first = block->after;
        if (!block->used)
            list_remove(&pool->free, block);
        free(block);
    }
    list_remove(&pool->chunks, chunk);
    pool->stats.held -= chunk->memory.bytes;
    pool->device->plugin->table.buffer_free(pool->device->impl, &chunk->memory);
    free(chunk);
}

/* Frees idle chunks, the oldest first, until the pool holds at most `most` bytes. */
static void pool_trim(struct pool *pool, uint64_t most)
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
static void pool_shed(struct pool *pool, uint64_t bytes)
{
    const uint64_t now = pool->stats.used + bytes;
    const uint64_t peak = now > pool->stats.peak ? now : pool->stats.peak;
    const uint64_t part = peak / SPARE_PART;
    const uint64_t most = peak + (part > SPARE_BYTES ? part : SPARE_BYTES);
    pool_trim(pool, most > bytes ? most - bytes : 0);
}

static uint64_t pool_grain(const struct pool *pool)
{
    return pool->device->info.buffer_alignment;
}

/* The largest buffer of the device, in whole grains. */
static uint64_t pool_largest(const struct pool *pool)
{
    const uint64_t max = pool->device->info.buffer_max;
    return (max ? max : UINT64_MAX) / pool_grain(pool) * pool_grain(pool);
}

static bool pool_exceeds(const struct pool *pool, uint64_t more)
{
    return pool->stats.limit && (pool->stats.held > pool->stats.limit ||
                                 more > pool->stats.limit - pool->stats.held);
}

/* The error for a request above the limit; the caller adds the name of the device. */
static enum hw_status limit_refuse(const struct pool *pool, uint64_t bytes)
{
    return fail(HW_NO_MEMORY,
                "%s requested; the limit is %s, of which %s are allocated and %s in use "
                "(HW_MEMORY_LIMIT sets it)",
                size_text(bytes).text, size_text(pool->stats.limit).text,
                size_text(pool->stats.held).text, size_text(pool->stats.used).text);
}

/* Calls buffer_alloc(), whose message says how much memory of the device is free. */
static enum hw_status memory_ask(struct pool *pool, uint64_t bytes, uint32_t flags,
                                 struct hw_buffer *memory)
{
    struct hw_device *device = pool->device;
    const struct hw_plugin *table = &device->plugin->table;
    *memory = (struct hw_buffer){ .device = device->impl, .bytes = bytes, .flags = flags };
    plugin_message_clear();
    enum hw_status status =
        device_result(device, table->buffer_alloc(device->impl, bytes, flags, memory));
    if (status)
        return fail_in(status,
                       "%s: %s requested, %s allocated by this process%s%s: ", device->name,
                       size_text(bytes).text, size_text(pool->stats.held).text,
                       pool->stats.limit ? ", the limit is " : "",
                       pool->stats.limit ? size_text(pool->stats.limit).text : "");
    /* The fields that the host sets. */
    memory->device = device->impl;
    memory->offset = 0;
    memory->bytes = bytes;
    memory->flags |= flags | (memory->host ? HW_BUFFER_HOST_VISIBLE : 0u);
    if (memory->flags & HW_BUFFER_HOST_VISIBLE && !memory->host)
        status = fail(HW_INTERNAL,
                      "%s: plugin %s allocated host-visible memory without an address",
                      device->name, table->name);
    else if ((uintptr_t)memory->host % pool_grain(pool))
        status = fail(HW_INTERNAL,
                      "%s: plugin %s allocated memory at %p, which is not a multiple of "
                      "%" PRIu64,
                      device->name, table->name, memory->host, pool_grain(pool));
    if (status)
        table->buffer_free(device->impl, memory);
    return status;
}

/* Makes a chunk of one free block. The caller has checked the limit. */
static enum hw_status chunk_make(struct pool *pool, const struct request *r, uint64_t bytes,
                                 struct block **block)
{
    const uint32_t flags = r->flags | (r->zeroed ? HW_BUFFER_ZEROED : 0u);
    pool_shed(pool, bytes);
    struct chunk *chunk = calloc(1, sizeof *chunk);
    struct block *whole = calloc(1, sizeof *whole);
    enum hw_status status = chunk && whole
                                ? memory_ask(pool, bytes, flags, &chunk->memory)
                                : fail(HW_NO_MEMORY, "out of memory for a buffer");
    if (status) {
        free(chunk);
        free(whole);
        return status;
    }
    chunk->flags = r->flags;
    chunk->large = r->large;
    chunk->once = r->zeroed && !chunk->memory.host;
    chunk->first = whole;
    list_add(&pool->chunks, chunk);
    pool->stats.held += bytes;
    whole->chunk = chunk;
    whole->length = bytes;
    list_add(&pool->free, whole);
    *block = whole;
    return HW_OK;
}

/* Whether the host had an address for the latest chunk with these flags. */
static bool is_visible(const struct pool *pool, uint32_t flags)
{
    const struct chunk *chunk = pool->chunks;
    while (chunk && chunk->flags != flags)
        chunk = chunk->next;
    return chunk && chunk->memory.host;
}

/* Allocates a chunk of the usual size. If that fails, tries the requested size. If that fails, too,
 * frees idle chunks and tries the requested size again. */
static enum hw_status pool_grow(struct pool *pool, const struct request *r,
                                struct block **block)
{
    enum hw_status status = HW_NO_MEMORY;
    if (!r->large && !pool_exceeds(pool, CHUNK_BYTES) &&
        CHUNK_BYTES <= pool_largest(pool) && (!r->zeroed || is_visible(pool, r->flags)))
        status = chunk_make(pool, r, CHUNK_BYTES, block);
    if (status == HW_NO_MEMORY && !pool_exceeds(pool, r->bytes))
        status = chunk_make(pool, r, r->bytes, block);
    if (status != HW_NO_MEMORY)
        return status;
    pool_trim(pool, 0);
    if (pool_exceeds(pool, r->bytes))
        return fail_in(limit_refuse(pool, r->bytes), "%s: ", pool->device->name);
    return chunk_make(pool, r, r->bytes, block);
}

enum hw_status pool_count(struct pool *pool, int64_t bytes)
{
    enum hw_status status = HW_OK;
    pthread_mutex_lock(&pool->lock);
    if (bytes > 0 && pool_exceeds(pool, (uint64_t)bytes))
        pool_trim(pool, 0);
    if (bytes > 0 && pool_exceeds(pool, (uint64_t)bytes))
        status = limit_refuse(pool, (uint64_t)bytes);
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

const struct hw_buffer *block_memory(const struct block *block)
{
    return &block->chunk->memory;
}

/* Makes the rest after the first `bytes` bytes a block of its own. If out of memory, the block
 * stays whole. */
static void block_split(struct pool *pool, struct block *block, uint64_t bytes)
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
    list_add(&pool->free, rest);
}

/* Merges `block` with the free block after it. */
static void block_join(struct pool *pool, struct block *block)
{
    struct block *after = block->after;
    list_remove(&pool->free, after);
    block->length += after->length;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    free(after);
}

static void block_give(struct pool *pool, struct block *block)
{
    struct chunk *chunk = block->chunk;
    pool->stats.used -= block->length;
    pool->stats.buffers--;
    block->used = false;
    list_add(&pool->free, block);
    if (block->after && !block->after->used)
        block_join(pool, block);
    if (block->before && !block->before->used)
        block_join(pool, block->before);
    if (chunk->once && !chunk->first->used && !chunk->first->after)
        chunk_free(pool, chunk);
}

void pool_give(struct pool *pool, struct block *block)
{
    pthread_mutex_lock(&pool->lock);
    block_give(pool, block);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- buffers freed in a queue's order ---- */

/* Removes the buffer, which nothing uses any more, from the list and frees it. */
static void later_drop(struct pool *pool, struct buffer **at)
{
    const struct hw_plugin *table = &pool->device->plugin->table;
    struct buffer *buffer = *at;
    *at = buffer->next;
    device_changed(pool->device);
    table->event_destroy(buffer->mark);
    if (buffer->block)
        block_give(pool, buffer->block);
    else
        table->buffer_free(pool->device->impl, &buffer->base);
    free(buffer);
}

/* Frees the buffers whose events have completed or, with `wait`, waits and frees all of them.
 * Returns whether it freed any. If querying the event fails, a buffer stays until its queue is
 * waited for. */
static bool later_collect(struct pool *pool, bool wait)
{
    const struct hw_plugin *table = &pool->device->plugin->table;
    bool any = false;
    for (struct buffer **at = &pool->later; *at;) {
        void *mark = (*at)->mark;
        if (wait ? table->event_sync(mark) : table->event_query(mark)) {
            at = &(*at)->next;
            continue;
        }
        later_drop(pool, at);
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
        later_drop(pool, &pool->later);
    pthread_mutex_unlock(&pool->lock);
}

void pool_passed(struct pool *pool, const struct hw_queue *queue)
{
    pthread_mutex_lock(&pool->lock);
    for (struct buffer **at = &pool->later; *at;)
        if ((*at)->after == queue)
            later_drop(pool, at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- taking ---- */

/* The smallest free block that fits. A large block must not be much larger than the request, unless
 * `wasteful`. The host must be able to clear zeroed memory. */
static struct block *best_fit(const struct pool *pool, const struct request *r,
                              bool wasteful)
{
    const uint64_t most = r->large && !wasteful && r->bytes < UINT64_MAX / 2
                              ? r->bytes + r->bytes / 8
                              : UINT64_MAX;
    struct block *best = NULL;
    for (struct block *block = pool->free; block; block = block->next) {
        const struct chunk *chunk = block->chunk;
        if (chunk->flags == r->flags && chunk->large == r->large &&
            block->length >= r->bytes && block->length <= most &&
            (!best || block->length < best->length) && (!r->zeroed || chunk->memory.host))
            best = block;
    }
    return best;
}

/* Finds a free block. With `pressed`, accepts any block, and waits for buffers that queues still
 * use. */
static struct block *block_find(struct pool *pool, const struct request *r, bool pressed)
{
    struct block *block = best_fit(pool, r, pressed);
    return block || !later_collect(pool, pressed) ? block : best_fit(pool, r, pressed);
}

/* Finds or allocates a block. Sets `*used` if the memory has been used before. */
static enum hw_status block_obtain(struct pool *pool, const struct request *r,
                                   struct block **block, bool *used)
{
    const uint64_t buffers = pool->stats.buffers;
    if ((*used = (*block = block_find(pool, r, false))))
        return HW_OK;
    const struct saved_message saved = message_save(); /* errors on the way do not matter */
    enum hw_status status = pool_grow(pool, r, block);
    if (status == HW_NO_MEMORY) {
        if ((*used = (*block = block_find(pool, r, true))))
            status = HW_OK;
        else if (pool->stats.buffers < buffers) /* there may be room for a chunk now */
            status = pool_grow(pool, r, block);
    }
    if (!status)
        message_restore(&saved);
    return status;
}

static enum hw_status block_take(struct pool *pool, const struct request *r,
                                 struct block **block, bool *used)
{
    pool->stats.requests++;
    const enum hw_status status = block_obtain(pool, r, block, used);
    if (status)
        return status;
    pool->stats.hits += *used;
    list_remove(&pool->free, *block);
    (*block)->used = true;
    block_split(pool, *block, r->bytes);
    pool->stats.used += (*block)->length;
    pool->stats.buffers++;
    if (pool->stats.used > pool->stats.peak)
        pool->stats.peak = pool->stats.used;
    return HW_OK;
}

enum hw_status pool_take(struct pool *pool, uint64_t bytes, uint32_t flags,
                         struct block **out)
{
    const uint64_t most = pool_largest(pool), step = pool_grain(pool);
    if (bytes > most)
        return fail(HW_NO_MEMORY, "%s: %s requested; its largest buffer has %s",
                    pool->device->name, size_text(bytes).text, size_text(most).text);
    const uint64_t whole = ((bytes ? bytes : 1) + step - 1) / step * step;
    const struct request r = { .bytes = whole,
                               .flags = flags & ~(uint32_t)HW_BUFFER_ZEROED,
                               .zeroed = flags & HW_BUFFER_ZEROED,
                               .large = whole >= LARGE_BYTES };
    bool used = false;
    pthread_mutex_lock(&pool->lock);
    const enum hw_status status = block_take(pool, &r, out, &used);
    pthread_mutex_unlock(&pool->lock);
    if (!status && used && r.zeroed)
        memset((char *)block_memory(*out)->host + (*out)->offset, 0,
               (size_t)(*out)->length);
    return status;
}

void pool_destroy(struct pool *pool)
{
    while (pool->chunks)
        chunk_free(pool, pool->chunks);
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
    pthread_mutex_lock(&device->pool->lock);
    later_collect(device->pool, false);
    answer_struct(stats, &device->pool->stats, sizeof *stats);
    pthread_mutex_unlock(&device->pool->lock);
    return HW_OK;
}

enum hw_status hw_pool_trim(struct hw_device *device)
{
    REQUIRE(device);
    enum hw_status status = guard(device->context->generation);
    if (status || (status = device_wake(device)))
        return status;
    pthread_mutex_lock(&device->pool->lock);
    later_collect(device->pool, false);
    pool_trim(device->pool, 0);
    pthread_mutex_unlock(&device->pool->lock);
    return HW_OK;
}
