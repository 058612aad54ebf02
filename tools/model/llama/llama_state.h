/* SPDX-License-Identifier: MIT */
/* llama_state.h - a loaded model: llama_load.c makes it, llama.c runs it. */
#ifndef HW_MODEL_LLAMA_STATE_H
#define HW_MODEL_LLAMA_STATE_H

#include "llama.h"
#include "slot.h"

/* Steps that may be submitted before the first of them has completed. */
enum { STEPS = 4 };

struct layer {
    struct hw_tensor attention_norm, q, k, v, q_bias, k_bias, v_bias, output;
    struct hw_tensor q_norm, k_norm;
    struct hw_tensor inner_norm, gate, up, down;
    struct hw_tensor keys, values; /* the cache: [context, kv_heads * width of a head] */
};

/* A weight, and the tensor of the file that it is. */
struct source {
    struct hw_tensor weight;
    const struct gguf_tensor *tensor;
};

struct llama {
    struct shape shape;
    struct hw_device *device;
    struct hw_queue *queue;
    struct hw_graph *graph;
    int64_t context, batch, score_rows;
    int64_t length; /* tokens in the cache */

    struct hw_tensor embedding, rope_factors, norm, output;
    struct layer *layers;

    /* Matrices that are multiplied by the same row are one in memory, and so are the products. If
     * the device shares the memory of the host, each matrix stays in the file or is packed by
     * itself. */
    bool joins;
    struct hw_tensor residual, normed, q, k, v, attended, gate, up; /* [batch, ..] */
    int32_t heads_type;                                             /* see llama_settings */
    uint32_t inner_bf16;
    struct hw_tensor scores; /* [score rows, vocabulary] */
    /* i32: the length of the cache, then positions, then ids. A step ends by writing the best
     * token where the next step of one token has its id. */
    struct hw_tensor inputs;
    /* what is uploaded to it, and behind that the best token; steps take turns */
    struct slot slots[STEPS];
    uint64_t steps, answers; /* submitted; taken by llama_next() */

    /* the file, if the device reads it where it is; otherwise NULL */
    struct hw_buffer *mapping;
    struct hw_buffer **buffers; /* of all other tensors */
    size_t buffer_count;
    struct source *sources;
    size_t source_count;
    struct llama_memory memory;
    const struct gguf *file;
    int64_t pack_next, pack_end; /* the matrices that are packed later */
};

/* Sets `why` to `what` and the library's message, and returns false. */
static inline bool failed(const char *what, struct fault *why)
{
    return fault(why, "%s: %s", what, hw_message());
}

static inline int64_t at_most(int64_t count, int64_t limit)
{
    return count < limit ? count : limit;
}

/* Decodes a batch of tokens that are in `inputs`, and computes what the last of them needs. */
enum hw_status llama_step(struct llama *l, int64_t rows);

/* llama_load.c: records the step of one token, as it is now. */
bool llama_record(struct llama *l, struct fault *why);

/* llama_pack.c: packs the matrices, now or later, if there is room. Frees the graph of them. */
bool llama_pack(struct llama *l, const struct llama_settings *settings, struct fault *why);

#endif
