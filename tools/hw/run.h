/* SPDX-License-Identifier: MIT */
/* run.h - one run of `hw run`: what was asked for, what is open, what came out. */
#ifndef HW_TOOL_RUN_H
#define HW_TOOL_RUN_H

#include "llama.h"
#include "perplexity.h"
#include "sampler.h"
#include "tokenizer.h"

/* Options as popt reads them; NULL: not given. */
struct words {
    char *prompt, *perplexity, *device, *kv_type, *count, *context, *temperature, *top_k,
        *top_p, *seed;
};

struct run {
    const char *path;
    const struct words *words;
    int64_t count;   /* tokens to generate */
    int64_t context; /* asked for; 0: what is needed */
    int32_t kv_type;
    struct sampler_settings sampling;

    struct gguf *file;
    struct shape shape;
    struct tokenizer *tokenizer;
    struct tokens prompt; /* or, for --perplexity, the text */
    struct hw_context *library;
    struct hw_device *device;
    struct llama *llama;

    int32_t *generated;
    int64_t generated_count;
    struct decoder decoder;
    struct text text;
    const char *ended; /* why the text ends here */
    double prompt_seconds, step_seconds;
    int64_t steps; /* decode steps in that time */
    struct perplexity perplexity;
};

/* What it took: rates, device, memory, which ops ran where. On standard error; or, with the
 * text or the score itself, as one JSON object on standard output. */
void run_tell(const struct run *run);
void run_tell_json(const struct run *run);

#endif
