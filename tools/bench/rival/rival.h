/* SPDX-License-Identifier: MIT */
/* rival.h - other libraries that compute an op on a device. `hw-rival` opens those that it needs;
 * they work on this library's queue and memory. Each is a file rival_*.c. */
#ifndef HW_TOOL_RIVAL_H
#define HW_TOOL_RIVAL_H

#include "bench/products.h"

#include <stddef.h>

/* Operands as handles of the kind `memory`. */
struct rival_operands {
    struct hw_import a, b, c; /* of a product */
    struct hw_import q, k, v, y;
};

enum { RIVAL_WORKSPACE = 64 << 20 };

/* A library. Functions that return text return NULL for success, or the reason of a failure. */
struct rival {
    const char *backend; /* of its devices */
    uint32_t op;         /* HW_OP_MATMUL, or HW_OP_ATTENTION */
    /* Kinds of handles: "cuda.stream". NULL: it needs no queue, and takes memory by address. */
    const char *queue, *memory;
    const char *const
        *usual; /* shapes that are measured if none is named; NULL ends them */
    bool tf32;  /* on its devices, f32 may be rounded to TF32 */
    /* Opens the library, for a queue; `workspace` has RIVAL_WORKSPACE bytes. */
    const char *(*open)(void **self, void *queue, const struct hw_import *workspace);
    /* "cuBLASLt 13.0.0" */
    const char *(*name)(void *self);
    /* The name of a way; NULL: ways have no names. */
    const char *(*way_name)(void *self, int way);
    void (*close)(void *self);

    /* For products. `prepare` sets `ways` to the number of kernels that the library has for a
     * product whose operands all have its type and are contiguous. If the product allows TF32 and
     * the library can use it, the ways do, and their names say so. */
    const char *(*prepare)(void *self, const struct product *product, int *ways);
    /* Submits the prepared product to the queue. */
    const char *(*multiply)(void *self, int way, const struct rival_operands *operands);

    /* Likewise for attention on contiguous operands: q [queries,heads,size], k and v
     * [keys,kv_heads,size], y as q. Work goes to `queue`, which may differ from the handle given to
     * open(): it may be recording. */
    const char *(*prepare_attention)(void *self, const struct attention_shape *shape,
                                     int *ways);
    const char *(*attend)(void *self, int way, void *queue,
                          const struct rival_operands *operands);
};

extern const struct rival rival_clblast, rival_cublaslt, rival_cudnn, rival_openblas,
    rival_blis, rival_onednn;

#endif
