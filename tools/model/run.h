/* SPDX-License-Identifier: MIT */
/* run.h - one run of `hw run`: its options, its open objects, its results. */
#ifndef HW_TOOL_RUN_H
#define HW_TOOL_RUN_H

#include "command/measure.h"
#include "model/gguf/quantize.h"
#include "model/llama/llama.h"
#include "model/llama/perplexity.h"
#include "model/llama/sampler.h"
#include "model/tokenizer/tokenizer.h"

/* The options as popt reads them; NULL: not given. */
struct words {
    char *prompt, *prompt_file, *perplexity, *device, *kv_type, *count, *context,
        *temperature, *top_k, *top_p, *seed, *shape, *type, *depth, *repetitions,
        *precision;
    int bench, no_pack;
};

/* A measurement of --bench: a prompt, or single tokens, after `depth` tokens. */
struct trial {
    int64_t prompt, count; /* one of them is 0 */
    int64_t depth;
    struct spread rate; /* tokens a second */
};
enum { MOST_LENGTHS = 16, MOST_TRIALS = MOST_LENGTHS * (MOST_LENGTHS + 1) };

struct run {
    const char *path;            /* of the model, or the name of its shape */
    const struct shape *known;   /* the shape, if there is no file */
    const char *type;            /* of its weights */
    const struct recipe *recipe; /* the same */
    const struct words *words;
    int64_t count;                /* tokens to generate */
    int64_t context;              /* from --context; 0: as much as needed */
    int32_t key_type, value_type; /* of the cache; 0: as the precision suggests */
    char precision[8];            /* as in HW_PRECISION */
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
    struct trial trials[MOST_TRIALS];
    int trial_count, repetitions; /* of each trial */
};

/* Reads a whole number in the range; complains if it is none. NULL leaves the value unchanged. */
bool run_whole(const char *option, const char *word, int64_t low, int64_t high,
               int64_t *value);

/* Whether Ctrl-C was pressed. */
bool run_interrupted(void);

/* For --bench: reads the measurements from the options; returns the tokens that the cache must
 * hold; measures, and prints the table. */
bool bench_read(struct run *run);
int64_t bench_context(const struct run *run);
bool bench_run(struct run *run, struct fault *why);

/* The measured trials as an array. */
json_t *bench_json(const struct run *run);

/* Prints rates, device, memory, and where ops ran: to standard error, or as one JSON object
 * together with the text or the score. */
void run_tell(const struct run *run);
void run_tell_json(const struct run *run);

#endif
