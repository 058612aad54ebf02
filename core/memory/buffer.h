/* SPDX-License-Identifier: MIT */
/* buffer.h - buffers: a block of the device's pool, or imported memory. */
#ifndef HW_MEMORY_BUFFER_H
#define HW_MEMORY_BUFFER_H

#include "core.h"

/* Every struct hw_buffer of the library is the first member of one of these. */
struct buffer {
    struct hw_buffer base;
    /* The first byte: a host address, aligned for every dtype, or a number derived from the
     * plugin's handle. */
    uint64_t address;
    struct hw_device *owner;
    struct block *block;     /* NULL: imported */
    struct hw_tensor packed; /* the packed tensor in it; layout 0: none */
    struct hw_queue *after;  /* freed in the order of this queue: see pool_give_after() */
    void *mark;              /* the plugin's event after the last use in that queue */
    struct buffer *next, *prev; /* in the list of the context or of a queue */
};

static inline struct buffer *buffer_of(const struct hw_buffer *base)
{
    return (struct buffer *)(void *)(uintptr_t)base;
}

/* Makes a buffer that is not in the context's list. */
enum hw_status buffer_make(struct hw_device *device, uint64_t bytes, uint32_t flags,
                           struct buffer **out);
void buffer_drop(struct buffer *buffer);
void buffer_list(struct buffer *buffer);
void buffer_unlist(struct buffer *buffer);

#endif
