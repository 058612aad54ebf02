/* SPDX-License-Identifier: MIT */
/* sampler.h - chooses the next token from the scores of a model: the best one, or a random
 * one of the best. The same settings, seed and scores give the same tokens everywhere. */
#ifndef HW_MODEL_SAMPLER_H
#define HW_MODEL_SAMPLER_H

#include "util/fault.h"

#include <stdint.h>

struct sampler_settings {
    /* 0: greedy, the first of the best; otherwise scores are divided by it */
    double temperature;
    int32_t top_k; /* keep the k best tokens; 0: all */
    double top_p; /* of these, keep the best that together reach this probability; 1: all */
    uint64_t seed;
};

struct sampler;

/* Returns NULL if out of memory. The temperature must be finite and not negative, top_k not
 * negative, top_p above 0 and at most 1; `count` is the size of the vocabulary. */
struct sampler *sampler_create(const struct sampler_settings *settings, int32_t count);
void sampler_destroy(struct sampler *sampler);

/* Chooses the next token from `count` scores. Returns -1 if no score is a number above
 * minus infinity: the arithmetic of the model has then failed. */
int32_t sampler_choose(struct sampler *sampler, const float *scores);

#endif
