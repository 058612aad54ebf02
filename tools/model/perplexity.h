/* SPDX-License-Identifier: MIT */
/* perplexity.h - how well a model predicts a text. */
#ifndef HW_MODEL_PERPLEXITY_H
#define HW_MODEL_PERPLEXITY_H

#include "llama.h"

struct perplexity {
    double nll; /* sum over the tokens of -ln p(token | those before it in its window) */
    int64_t tokens;  /* predicted */
    int64_t wanted;  /* of so many */
    int64_t windows; /* done */
    double seconds;
};

/* Scores a text in windows of the model's context, each token by those before it in its
 * window. A window begins with `bos`, or, if that is -1, with the token before it; only the
 * first token of a text without BOS is not predicted. `tokens` has no BOS of its own.
 * `next`, if not NULL, is told before each window how many of how many are done, and ends
 * the measurement by answering false. */
bool perplexity_measure(struct llama *llama, const int32_t *tokens, int64_t count,
                        int32_t bos,
                        bool (*next)(void *user, int64_t done, int64_t windows), void *user,
                        struct perplexity *perplexity, struct fault *why);

/* -ln softmax(scores)[target], in double. NaN if the scores are no numbers. */
double negative_log_likelihood(const float *scores, int64_t count, int32_t target);

#endif
