/* SPDX-License-Identifier: MIT */
/* pool.h - one pool per device: large pieces of the device's memory, split into blocks. */
#ifndef HW_MEMORY_POOL_H
#define HW_MEMORY_POOL_H

#include "core.h"

/* Buffers begin at multiples of this, or of the device's buffer_alignment if that is
 * larger. */
#define POOL_GRAIN 256

struct buffer;

/* A part of a chunk; `offset` and `length` are multiples of the device's buffer_alignment. */
struct block {
    struct chunk *chunk;
    struct block *before, *after; /* in the chunk, by address */
    struct block *next, *prev;    /* in the list of free blocks */
    uint64_t offset, length;
    bool used;
};
enum hw_status pool_create(struct hw_device *device, struct pool **pool);
void pool_destroy(struct pool *pool);

enum hw_status pool_take(struct pool *pool, uint64_t bytes, uint32_t flags,
                         struct block **out);
void pool_give(struct pool *pool, struct block *block);
/* Frees the buffer once its event has completed, at the latest when memory or statistics
 * are requested. */
void pool_give_after(struct pool *pool, struct buffer *buffer);
/* The queue has completed: frees the buffers that were freed in its order. */
void pool_passed(struct pool *pool, const struct hw_queue *queue);
/* Counts memory that the plugin allocates for itself; `bytes` is negative when it frees memory.
 * HW_NO_MEMORY if the limit would be exceeded. */
enum hw_status pool_count(struct pool *pool, int64_t bytes);
/* The plugin's description of the block's whole chunk. */
const struct hw_buffer *block_memory(const struct block *block);

#endif
