/* SPDX-License-Identifier: MIT */
/* llama.h - the LLaMA decoder on one device: weights as in the file, a KV cache, and the
 * ops that turn tokens into scores for the next one. Written on the public headers alone.
 *
 * Activations are f32, unless llama_settings allows other types in large batches. Everything that
 * changes from token to token (ids, positions, the length of the cache) is in device
 * memory, so one recorded graph serves every decode step, and the device need not wait for
 * the host between greedy ones.
 * Only one thread at a time may use a struct llama. */
#ifndef HW_MODEL_LLAMA_H
#define HW_MODEL_LLAMA_H

#include "model/gguf/shape.h"

#include <hw/hw.h>

struct llama;

/* Calls `each` for every weight of a model of this shape, except those that a file need not
 * have; the matrix of the scores is among them. A vector has one row. */
typedef void llama_weight_fn(void *user, const char *name, int64_t rows, int64_t cols);
void llama_weights(const struct shape *shape, llama_weight_fn *each, void *user);

enum { LLAMA_LARGE = 128 };

struct llama_settings {
    int32_t key_type, value_type; /* of the cache, see hw_attention(); default HW_F32 */
    /* For batches of LLAMA_LARGE tokens or more: the type of queries, keys, values and the output
     * of attention, unless heads are normed (default HW_F32); and the types of weights, as bits 1
     * << dtype, with which gate and up are bf16 (default: none). */
    int32_t heads_type;
    uint32_t inner_bf16;
    /* tokens that the cache has room for; the default and the limit is that of the model */
    int64_t context;
    int64_t batch;      /* tokens of a long text processed at once; default: 2048 if the
                         * device has much memory of its own, otherwise 512 */
    int64_t score_rows; /* how many of these llama_score() scores at once; default: 1 */
    bool pack; /* weights in the device's own layout, if it has one and memory for a copy */
    bool
        pack_later; /* leave weights that the device reads in the file to llama_pack_part() */
    /* in bytes of uploaded weights, then in matrices that are packed; may be NULL */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

struct llama_memory {
    uint64_t mapped; /* bytes of weights that the device reads in the file */
    uint64_t packed; /* bytes of weights in the device's own layout, from its pool */
    double pack_seconds;
    /* other bytes from the pool; weights: in the layout of the file */
    uint64_t weights, cache, scratch;
    uint64_t uploaded; /* bytes of weights that were copied from the file */
    double upload_seconds;
};

/* Checks every weight against `shape`, allocates memory, records the decode graph, then
 * uploads the weights. A device that shares the host's memory reads them in the file
 * instead, or packs them from there. A file of random_model() gets random weights.
 * Returns NULL with the reason in `why`, and leaves nothing behind. `file` and the context of
 * `device` must stay open until llama_free(). */
struct llama *llama_load(const struct gguf *file, const struct shape *shape,
                         struct hw_device *device, const struct llama_settings *settings,
                         struct fault *why);
void llama_free(struct llama *llama);

/* Appends tokens to the sequence: several in batches, a single one with the recorded graph.
 * May return before the device has finished. Returns false if the cache has no room or the
 * device failed. */
bool llama_feed(struct llama *llama, const int32_t *tokens, int64_t count,
                struct fault *why);

/* Packs the next part of the weights that `pack_later` left; later steps use it. So the first token
 * does not wait for packing. Waits for the device. Does nothing if no part is left. */
bool llama_pack_part(struct llama *llama, struct fault *why);

/* For the last token fed: its `vocabulary` scores (logits) for the next token, or only the
 * first of the best, which the device finds. Both wait for the device. */
bool llama_scores(struct llama *llama, float *scores, struct fault *why);
bool llama_best(struct llama *llama, int32_t *token, struct fault *why);

/* Greedy decoding ahead of the host. llama_advance() appends the token that llama_best() would
 * return, which is already on the device, without waiting for it. llama_next() then waits for one
 * such step, in the order of the calls, and returns the best token after it. At most four steps
 * may be ahead; llama_feed() and llama_score() drop the results of those that are. */
bool llama_advance(struct llama *llama, struct fault *why);
bool llama_next(struct llama *llama, int32_t *token, struct fault *why);

/* Whether the device works asynchronously, so that it should always have a step ahead. */
bool llama_runs_ahead(const struct llama *llama);

/* As llama_feed(), and calls `row` with the scores after every token, in order. */
bool llama_score(struct llama *llama, const int32_t *tokens, int64_t count,
                 void (*row)(void *user, const float *scores), void *user,
                 struct fault *why);

/* Fills the whole cache with random keys and values, for measuring. Waits for the device. */
bool llama_fill(struct llama *llama, struct fault *why);

/* Makes the first `length` rows of the cache the sequence; 0: removes all tokens. */
void llama_rewind(struct llama *llama, int64_t length);

/* The number of tokens in the sequence, and how many it has room for. */
int64_t llama_length(const struct llama *llama);
int64_t llama_context(const struct llama *llama);
int64_t llama_vocabulary(const struct llama *llama);

struct llama_memory llama_memory(const struct llama *llama);
struct hw_queue *llama_queue(const struct llama *llama);

/* The recorded decode step; NULL if the device has no graphs, so that ops are submitted one
 * by one. */
struct hw_graph *llama_graph(const struct llama *llama);

#endif
