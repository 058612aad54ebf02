/* SPDX-License-Identifier: MIT */
/* buffer.h - buffers: a block of the device's pool, or memory that somebody else made. */
#ifndef HW_RUN_BUFFER_H
#define HW_RUN_BUFFER_H

#include "core.h"

/* What a struct hw_buffer * of this library's points to. */
struct buffer {
    struct hw_buffer base;
    uint64_t address; /* of its first byte: the host's address, or by the plugin's handle */
    struct hw_device *owner;
    struct block *block;        /* NULL: imported */
    struct hw_tensor packed;    /* what hw_tensor_pack() made of it; layout 0: nothing */
    struct hw_queue *after;     /* freed in this queue's order: see pool_give_after() */
    void *mark;                 /* the plugin's event behind its last use there */
    struct buffer *next, *prev; /* the context's, or a queue's */
};

static inline struct buffer *buffer_of(const struct hw_buffer *base)
{
    return (struct buffer *)(void *)(uintptr_t)base;
}

/* A buffer that the context does not list. */
enum hw_status buffer_make(struct hw_device *device, uint64_t bytes, uint32_t flags,
                           struct buffer **out);
void buffer_drop(struct buffer *buffer);
void buffer_list(struct buffer *buffer);
void buffer_unlist(struct buffer *buffer);

#endif
