/* SPDX-License-Identifier: MIT */
/* llama.h - the LLaMA decoder on one device: weights as the file has them, a KV cache, and
 * the op list that turns tokens into scores for the next one. Written on <hw/hw.h> alone.
 *
 * Activations are f32. Everything that changes from token to token (ids, positions, the
 * length of the cache) lies in device memory, so that one recorded graph serves every
 * decode step. A struct llama is used by one thread at a time. */
#ifndef HW_MODEL_LLAMA_H
#define HW_MODEL_LLAMA_H

#include "shape.h"

#include <hw/hw.h>

struct llama;

struct llama_settings {
    int32_t kv_type; /* of the cache: HW_F32, HW_F16, HW_BF16 or HW_Q8_0; default HW_F32 */
    int64_t context; /* tokens the cache has room for; default and limit: the model's */
    int64_t batch;   /* tokens of a long text that are fed at once; default 512 */
    int64_t score_rows; /* of these, scored at once by llama_score(); default 1 */
    void (*progress)(void *user, uint64_t done,
                     uint64_t total); /* bytes of weights; or NULL */
    void *user;
};

struct llama_memory {
    uint64_t weights, cache, scratch; /* bytes taken from the device's pool */
};

/* Checks every weight against `shape`, makes room for all, records the decode graph, then
 * uploads the weights. NULL with the reason in `why`; nothing is left behind. `file` may be
 * closed afterwards, `device`'s context may not. */
struct llama *llama_load(const struct gguf *file, const struct shape *shape,
                         struct hw_device *device, const struct llama_settings *settings,
                         struct fault *why);
void llama_free(struct llama *llama);

/* Appends tokens to the sequence: long ones in batches, a single one by the recorded graph.
 * May return before the device is done. False if the cache has no room, or the device
 * failed. */
bool llama_feed(struct llama *llama, const int32_t *tokens, int64_t count,
                struct fault *why);

/* Of the last token fed: its `vocabulary` scores (logits) for what comes next, or only the
 * first of the best, found on the device. Waits for it. */
bool llama_scores(struct llama *llama, float *scores, struct fault *why);
bool llama_best(struct llama *llama, int32_t *token, struct fault *why);

/* As llama_feed(), and calls `row` with the scores behind every token, in order. */
bool llama_score(struct llama *llama, const int32_t *tokens, int64_t count,
                 void (*row)(void *user, const float *scores), void *user,
                 struct fault *why);

/* Forgets the sequence. */
void llama_rewind(struct llama *llama);

/* Tokens in the sequence, and how many there is room for. */
int64_t llama_length(const struct llama *llama);
int64_t llama_context(const struct llama *llama);
int64_t llama_vocabulary(const struct llama *llama);

struct llama_memory llama_memory(const struct llama *llama);
struct hw_queue *llama_queue(const struct llama *llama);

/* The recorded decode step; NULL if the device has no graphs: then ops are submitted
 * singly. */
struct hw_graph *llama_graph(const struct llama *llama);

#endif
