/* SPDX-License-Identifier: MIT */
/* driver_state.h - shared by the files of the stand-in: contexts, streams and results. */
#ifndef DRIVER_STATE_H
#define DRIVER_STATE_H

#include "cuda.h"
#include "stream.h"

/* Results that the plugin does not know. */
enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_HANDLE = 400,
    PEER_UNSUPPORTED = 217,
    NOT_FOUND = 500,
    SYSTEM_DRIVER_MISMATCH = 803,
};

struct context {
    int retained;
    int lost; /* the error that it did not survive */
    uint64_t used;
    unsigned reached; /* bits: the devices whose memory it may access */
};

/* Guards contexts, the list of streams and the watcher of launches. */
extern pthread_mutex_t driver_lock;

/* The CUDA version that the driver supports: 13000. */
int cuda_of_driver(void);

/* This thread's current context, or NULL. */
struct context *current(void);
/* Facts of the current context's device: the compute capability times ten, and the bytes of shared
 * memory per group. */
int capability_of_context(void);
int shared_most_of_context(void);

/* NULL unless the handle is a stream of the current context. */
struct stream *stream_of(void *handle);
/* Calls fn for each stream of a context; NULL: of all contexts. */
void for_streams(const struct context *context, void (*fn)(struct stream *stream));

#endif
