/* SPDX-License-Identifier: MIT */
/* load.h - much at once on a stand-in, for the tests of each vendor: threads that launch,
 * buffers of all sizes that come and go, and handles. */
#ifndef STANDIN_LOAD_H
#define STANDIN_LOAD_H

#include <hw/hw.h>

enum { LOAD_THREADS = 4, LOAD_LAUNCHES = 1000, LOAD_DEVICES = 2 };

struct load_vendor {
    const char *backend;
    const char *alloc, *free;     /* the functions for memory */
    uint64_t (*used)(int device); /* bytes of memory that are allocated */
    const char *queue, *memory;   /* the kinds of its handles */
};

/* Opens a context with this backend alone, and counts the calls from there on. */
struct hw_context *load_open(const struct load_vendor *vendor);

/* Threads, each on a queue of its own, two on each device; the test then counts what reached the
 * vendor. They start together, so that all want to load the same kernels. Fails the test if a call
 * fails, a result is wrong or another device computes it. */
void threads_launch_at_once(struct hw_context *context);

/* Threads register callbacks with one event at once, the first that it has; each is called once.
 * Opens a context, and closes it. */
void threads_share_an_event(const struct load_vendor *vendor);

/* 10 000 buffers of 1 KiB to 10 MiB: the vendor has given at most 1.1 times of what was used. */
void buffers_come_and_go(const struct load_vendor *vendor);
/* As those of a model's layers do. */
void sizes_that_repeat_are_hits(const struct load_vendor *vendor);

/* Handles of a queue and of memory that are exported can be imported, and are the same; those of
 * another kind are refused. */
void handles_go_out_and_in(const struct load_vendor *vendor);

#endif
