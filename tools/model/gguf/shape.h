/* SPDX-License-Identifier: MIT */
/* shape.h - the dimensions and constants of a transformer model, read from a file's
 * metadata and checked against each other. */
#ifndef HW_MODEL_SHAPE_H
#define HW_MODEL_SHAPE_H

#include "gguf.h"

struct shape {
    const char *architecture; /* a row of the table in shape.c */
    bool interleaved; /* how rope pairs elements: (2i, 2i+1), else (i, i + dims/2) */
    bool head_norm;   /* q and k have an rmsnorm for each head, before rope */
    int64_t context;  /* tokens that the model was trained to look back on */
    int64_t layers;
    int64_t width; /* of the residual stream: embedding length */
    int64_t inner; /* of the feed-forward part */
    int64_t heads, kv_heads;
    int64_t key_width, value_width; /* of one head */
    int64_t window;     /* keys that a query sees, its own included; 0: all before it */
    int64_t rope_dims;  /* elements of a head that rope rotates */
    int64_t vocabulary; /* rows of the embedding */
    int64_t tokens;     /* how many of them may have a text: vocab_size */
    float eps;          /* of rmsnorm */
    /* of rope, as hw_rope() takes them: */
    float theta, rope_scale, magnitude;
    int64_t rope_context; /* the next are set with yarn only */
    float yarn, beta_fast, beta_slow;
};

/* Returns false, with the reason in `why`, for an unknown architecture, a missing or
 * impossible number, or an unsupported feature (experts, a window for some layers only,
 * another rope scaling than linear and yarn), and for a key of the architecture that it does not
 * know, because that may change what the model computes. */
bool shape_read(const struct gguf *file, struct shape *shape, struct fault *why);

#endif
