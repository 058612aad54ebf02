/* SPDX-License-Identifier: MIT */
/* rival.h - other libraries that compute an op on a device, to compare this one with. They are
 * opened when `hw-rival` asks for them, and work in this library's queue and memory. Each is
 * a file rival_*.c. */
#ifndef HW_TOOL_RIVAL_H
#define HW_TOOL_RIVAL_H

#include "bench/products.h"

#include <stddef.h>

/* Where they are, in the terms of `memory`. */
struct rival_operands {
    struct hw_import a, b, c; /* of a product */
    struct hw_import q, k, v, y;
};

enum { RIVAL_WORKSPACE = 64 << 20 };

/* A library. Functions that return text return NULL for success, or what went wrong. */
struct rival {
    const char *backend; /* of its devices */
    uint32_t op;         /* HW_OP_MATMUL, or HW_OP_ATTENTION */
    /* Kinds of handles: "cuda.stream". NULL: it takes no queue, and memory by its address. */
    const char *queue, *memory;
    const char *const
        *usual; /* shapes that are measured if none is named; NULL ends them */
    bool tf32;  /* on its devices, f32 may be rounded to TF32 */
    /* Opens the library, for a queue; `workspace` has RIVAL_WORKSPACE bytes. */
    const char *(*open)(void **self, void *queue, const struct hw_import *workspace);
    /* "cuBLASLt 13.0.0" */
    const char *(*name)(void *self);
    /* What a way is called; NULL: ways have no names. */
    const char *(*way_name)(void *self, int way);
    void (*close)(void *self);

    /* Of products. `prepare` sets `ways` to the number of ways that the library has to compute a
     * product, all of whose operands are of its type and contiguous: kernels. They round f32 to
     * TF32 if the product allows it and the library can, and then their names say so. */
    const char *(*prepare)(void *self, const struct product *product, int *ways);
    /* Submits what was prepared, to the queue. */
    const char *(*multiply)(void *self, int way, const struct rival_operands *operands);

    /* The same of attention, whose operands are contiguous, too: q [queries,heads,size], k and v
     * [keys,kv_heads,size], y as q. Work is submitted to `queue`, which may be another handle than
     * that of open(): one that records. */
    const char *(*prepare_attention)(void *self, const struct attention_shape *shape,
                                     int *ways);
    const char *(*attend)(void *self, int way, void *queue,
                          const struct rival_operands *operands);
};

extern const struct rival rival_clblast, rival_cublaslt, rival_cudnn, rival_openblas,
    rival_blis, rival_onednn;

#endif
