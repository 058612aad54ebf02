/* SPDX-License-Identifier: MIT */
/* perplexity.h - how well a model predicts a text. */
#ifndef HW_MODEL_PERPLEXITY_H
#define HW_MODEL_PERPLEXITY_H

#include "llama.h"

struct perplexity {
    double nll; /* sum over the tokens of -ln p(token | those before it in its window) */
    int64_t tokens;  /* tokens that were predicted */
    int64_t wanted;  /* tokens to predict */
    int64_t windows; /* windows that are done */
    double seconds;
};

/* Scores a text in windows of the model's context, each token given those before it in its
 * window. A window begins with `bos` or, if that is -1, with the preceding token; then the
 * first token of the text is not predicted. `tokens` has no BOS of its own. `next`, if not
 * NULL, is called before each window with the number of windows done and of all windows;
 * false ends the measurement. */
bool perplexity_measure(struct llama *llama, const int32_t *tokens, int64_t count,
                        int32_t bos,
                        bool (*next)(void *user, int64_t done, int64_t windows), void *user,
                        struct perplexity *perplexity, struct fault *why);

/* -ln softmax(scores)[target], in double precision. NaN if the scores are not numbers. */
double negative_log_likelihood(const float *scores, int64_t count, int32_t target);

#endif
