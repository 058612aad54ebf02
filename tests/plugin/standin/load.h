/* SPDX-License-Identifier: MIT */
/* load.h - load tests on a stand-in, for each vendor: threads that launch, buffers of all sizes
 * that come and go, and handles. */
#ifndef STANDIN_LOAD_H
#define STANDIN_LOAD_H

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

enum { LOAD_THREADS = 4, LOAD_LAUNCHES = 1000, LOAD_DEVICES = 2 };

struct load_vendor {
    const char *backend;
    const char *alloc, *free;     /* the functions for memory */
    uint64_t (*used)(int device); /* bytes of memory that are allocated */
    const char *queue, *memory;   /* the kinds of its handles */
};

/* Opens a context with this backend alone and starts counting calls. */
struct hw_context *load_open(const struct load_vendor *vendor);

/* Runs threads, each with its own queue, two on each device; the test then counts the calls that
 * reached the vendor. They start together, so that all of them load the same kernels. Fails the
 * test if a call fails, a result is wrong or another device computes it. */
void threads_launch_at_once(struct hw_context *context);

/* Threads register callbacks with one new event at the same time; each is called once. Opens a
 * context, and closes it. */
void threads_share_an_event(const struct load_vendor *vendor);

/* 10 000 buffers of 1 KiB to 10 MiB: the vendor's allocations stay below 1.1 times the peak use. */
void buffers_come_and_go(const struct load_vendor *vendor);
/* Repeated sizes, like those of a model's layers, reach the vendor once. */
void sizes_that_repeat_are_hits(const struct load_vendor *vendor);

/* Exported handles of a queue and of memory can be imported and refer to the same objects. Handles
 * of another kind are rejected. */
void handles_go_out_and_in(const struct load_vendor *vendor);

#endif
