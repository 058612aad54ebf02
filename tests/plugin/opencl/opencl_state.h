/* SPDX-License-Identifier: MIT */
/* opencl_state.h - shared by the files of the stand-in: objects, and answers to queries. */
#ifndef OPENCL_STATE_H
#define OPENCL_STATE_H

#include "opencl.h"
#include "stream.h"

enum { SUCCESS = 0 };

/* The first member of every object that a handle points to. */
struct object {
    int references;
    void (*end)(void *self); /* frees it */
};

/* Allocates `bytes` of zeros that begin with an object, which has one reference. Never NULL. */
void *object_new(size_t bytes, void (*end)(void *self));
/* Both return SUCCESS. The last release ends the object. */
int object_retain(void *self);
int object_release(void *self);

/* Answers a query with `bytes` bytes, following OpenCL's rules for sizes. */
int reply(const void *from, size_t bytes, size_t room_for, void *value, size_t *size);
int reply_text(const char *text, size_t room_for, void *value, size_t *size);

struct fake_queue {
    struct object object;
    void *context;
    struct stream *stream;
    uint64_t properties;
    bool timed;
    struct fake_queue *next;
};

struct fake_buffer {
    struct object object;
    void *context;
    unsigned char *memory;
    size_t bytes;
};

#endif
