/* SPDX-License-Identifier: MIT */
/* sampler.h - chooses the next token from the scores that a model gave: greedily, or by
 * chance from the best candidates. The same settings, seed and scores give the same tokens
 * everywhere. */
#ifndef HW_MODEL_SAMPLER_H
#define HW_MODEL_SAMPLER_H

#include "fault.h"

#include <stdint.h>

struct sampler_settings {
    /* 0: greedy, the first of the best; else scores are divided by it */
    double temperature;
    int32_t top_k; /* keep the k best; 0: all */
    double top_p;  /* of these, keep the best that reach this probability; 1: all */
    uint64_t seed;
};

struct sampler;

/* NULL if memory runs out. Temperature must be finite and not negative, top_k not negative,
 * top_p above 0 and at most 1; `count` is the size of the vocabulary. */
struct sampler *sampler_create(const struct sampler_settings *settings, int32_t count);
void sampler_destroy(struct sampler *sampler);

/* The next token from its `count` scores, or -1 if none of them is a number above minus
 * infinity: then the model's arithmetic has failed. */
int32_t sampler_choose(struct sampler *sampler, const float *scores);

#endif
