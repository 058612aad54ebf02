/* SPDX-License-Identifier: MIT */
/* run.h - one run of `hw run`: its options, what is open, its results. */
#ifndef HW_TOOL_RUN_H
#define HW_TOOL_RUN_H

#include "llama.h"
#include "perplexity.h"
#include "sampler.h"
#include "tokenizer.h"

/* The options as popt reads them; NULL: not given. */
struct words {
    char *prompt, *prompt_file, *perplexity, *device, *kv_type, *count, *context,
        *temperature, *top_k, *top_p, *seed;
};

struct run {
    const char *path;
    const struct words *words;
    int64_t count;                /* tokens to generate */
    int64_t context;              /* from --context; 0: as much as needed */
    int32_t key_type, value_type; /* of the cache */
    struct sampler_settings sampling;

    struct gguf *file;
    struct shape shape;
    struct tokenizer *tokenizer;
    struct text input;    /* the prompt, or, for --perplexity, the text */
    bool prompted;        /* there is a prompt */
    struct tokens prompt; /* the input as tokens */
    struct hw_context *library;
    struct hw_device *device;
    struct llama *llama;

    int32_t *generated;
    int64_t generated_count;
    struct decoder decoder;
    struct text text;
    const char *ended; /* why the text ends here */
    double load_seconds, prompt_seconds, step_seconds;
    int64_t steps; /* decode steps in that time */
    struct perplexity perplexity;
};

/* Prints rates, device, memory, and which ops ran where: to standard error, or, together with the
 * text or the score, as one JSON object. */
void run_tell(const struct run *run);
void run_tell_json(const struct run *run);

#endif
