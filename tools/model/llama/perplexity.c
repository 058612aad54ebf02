/* SPDX-License-Identifier: MIT */
/* perplexity.c - the negative log likelihood of a text, window by window. */
#include "perplexity.h"
#include "util/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double negative_log_likelihood(const float *scores, int64_t count, int32_t target)
{
    double top = (double)scores[0], sum = 0;
    for (int64_t i = 1; i < count; i++)
        if ((double)scores[i] > top) /* gcc 12 for AArch64 crashes on fmax() here */
            top = (double)scores[i];
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)scores[i] - top);
    return log(sum) + top - (double)scores[target];
}

/* The tokens that the rows of scores should predict, in order. */
struct reader {
    const int32_t *targets;
    int64_t vocabulary;
    double nll;
};

static void read_row(void *user, const float *scores)
{
    struct reader *reader = user;
    reader->nll += negative_log_likelihood(scores, reader->vocabulary, *reader->targets++);
}

/* Scores text[0..count): the first token given `before`, the others given those before
 * them. */
static bool measure_window(struct llama *llama, int32_t before, const int32_t *text,
                           int64_t count, int32_t *window, struct perplexity *p,
                           struct fault *why)
{
    struct reader reader = { .targets = text, .vocabulary = llama_vocabulary(llama) };
    window[0] = before;
    memcpy(window + 1, text, (size_t)(count - 1) * sizeof *window);
    llama_rewind(llama, 0);
    if (!llama_score(llama, window, count, read_row, &reader, why))
        return false;
    if (!isfinite(reader.nll))
        return fault(
            why, "the model's scores are not finite numbers; its weights are damaged, or a "
                 "kernel is wrong (see 'hw verify')");
    p->nll += reader.nll;
    p->tokens += count;
    p->windows++;
    return true;
}

bool perplexity_measure(struct llama *llama, const int32_t *tokens, int64_t count,
                        int32_t bos,
                        bool (*next)(void *user, int64_t done, int64_t windows), void *user,
                        struct perplexity *p, struct fault *why)
{
    const int64_t context = llama_context(llama), first = bos < 0;
    const int64_t windows = (count - first + context - 1) / context;
    const double start = now();
    int32_t *window = malloc((size_t)context * sizeof *window);
    bool good = window || fault(why, "out of memory");
    *p = (struct perplexity){ .wanted = count - first };
    for (int64_t at = first, part; good && at < count; at += part) {
        part = count - at < context ? count - at : context;
        if (next && !next(user, p->windows, windows))
            break;
        good = measure_window(llama, bos < 0 ? tokens[at - 1] : bos, tokens + at, part,
                              window, p, why);
    }
    p->seconds = now() - start;
    free(window);
    return good;
}
