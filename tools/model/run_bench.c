/* SPDX-License-Identifier: MIT */
/* run_bench.c - `hw run --bench`: the speed of a model at reading prompts and producing tokens. */
#include "command/bar.h"
#include "command/output.h"
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The cases to measure ---- */

enum { MOST_TOKENS = 1 << 24, MOST_REPETITIONS = 1000 };

struct lengths {
    int64_t at[MOST_LENGTHS];
    int count;
};

/* "512,2048" */
static bool read_lengths(const char *option, const char *words, struct lengths *lengths)
{
    const char *word = words;
    for (lengths->count = 0; lengths->count < MOST_LENGTHS;) {
        char one[32];
        const size_t length = strcspn(word, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, word);
        if (!run_whole(option, one, 0, MOST_TOKENS, &lengths->at[lengths->count++]))
            return false;
        if (!word[length])
            return true;
        word += length + 1;
    }
    complain("%s: '%s' has more than %d numbers", option, words, MOST_LENGTHS);
    return false;
}

static void add_trial(struct run *run, int64_t prompt, int64_t count, int64_t depth)
{
    if (prompt || count)
        run->trials[run->trial_count++] =
            (struct trial){ .prompt = prompt, .count = count, .depth = depth };
}

bool bench_read(struct run *run)
{
    const struct words *w = run->words;
    struct lengths prompts, depths;
    int64_t count = 128, repetitions = 5;
    if (!read_lengths("--prompt", w->prompt ? w->prompt : "512", &prompts) ||
        !read_lengths("--depth", w->depth ? w->depth : "0", &depths) ||
        !run_whole("-n", w->count, 0, MOST_TOKENS, &count) ||
        !run_whole("--repetitions", w->repetitions, 1, MOST_REPETITIONS, &repetitions))
        return false;
    for (int i = 0; i < depths.count; i++) {
        for (int j = 0; j < prompts.count; j++)
            add_trial(run, prompts.at[j], 0, depths.at[i]);
        add_trial(run, 0, count, depths.at[i]);
    }
    if (run->trial_count == 0)
        return complain("--prompt 0 and -n 0 leave nothing to measure"), false;
    run->repetitions = (int)repetitions;
    return true;
}

int64_t bench_context(const struct run *run)
{
    int64_t context = 1;
    for (int i = 0; i < run->trial_count; i++) {
        const struct trial *t = &run->trials[i];
        const int64_t needed = t->depth + t->prompt + t->count;
        context = needed > context ? needed : context;
    }
    return context;
}

/* ---- Measuring ---- */

/* The measurements in progress. */
struct work {
    struct run *run;
    int32_t *prompt; /* ids, as many as the longest needs */
    double *rates;
    uint64_t done, total; /* passes */
};

/* Produces tokens as for greedy text. The first step uses the best token after the earlier
 * input. */
static bool produce(struct run *run, int64_t count, struct fault *why)
{
    const int64_t ahead = llama_runs_ahead(run->llama) ? 2 : 1;
    int32_t token;
    for (int64_t started = 0, taken = 0; taken < count; taken++) {
        for (; started < count && started < taken + ahead; started++)
            if (!llama_advance(run->llama, why))
                return false;
        if (!llama_next(run->llama, &token, why))
            return false;
    }
    return true;
}

/* One pass: from an idle device to the last token. */
static bool measure_pass(struct work *work, const struct trial *t, double *rate,
                         struct fault *why)
{
    struct run *run = work->run;
    int32_t best;
    if (run_interrupted())
        return fault(why, "interrupted");
    bar_draw("measuring", work->done++, work->total);
    llama_rewind(run->llama, t->depth);
    const double start = now();
    if (t->prompt ? !llama_feed(run->llama, work->prompt, t->prompt, why) ||
                        !llama_best(run->llama, &best, why)
                  : !produce(run, t->count, why))
        return false;
    *rate = (double)(t->prompt + t->count) / (now() - start);
    return true;
}

/* The first pass does not count: it compiles kernels and touches new memory. */
static bool measure_trial(struct work *work, struct trial *t, struct fault *why)
{
    const int count = work->run->repetitions;
    for (int i = -1; i < count; i++)
        if (!measure_pass(work, t, &work->rates[i < 0 ? 0 : i], why))
            return false;
    t->rate = spread_of(work->rates, (size_t)count);
    return true;
}

/* Scores that are not finite may be computed faster, or be a sign of skipped work. */
static bool check_scores(struct run *run, struct fault *why)
{
    const size_t count = (size_t)run->shape.vocabulary;
    float *scores = malloc(count * sizeof *scores);
    bool good = scores || fault(why, "out of memory");
    good = good && llama_scores(run->llama, scores, why);
    for (size_t i = 0; good && i < count; i++)
        if (!isfinite(scores[i]))
            good = fault(why, "the model's scores are not finite numbers; its weights are "
                              "damaged, or a kernel is wrong (see 'hw verify')");
    free(scores);
    return good;
}

static bool measure_all(struct work *work, struct fault *why)
{
    struct run *run = work->run;
    const int64_t most = bench_context(run);
    for (int64_t i = 0; i < most; i++) /* any different ids will do */
        work->prompt[i] = (int32_t)(i * 7919 % run->shape.vocabulary);
    for (int i = 0; i < run->trial_count; i++)
        if (!measure_trial(work, &run->trials[i], why) || !check_scores(run, why))
            return false;
    return true;
}

/* ---- Printing ---- */

/* "pp512", "tg128 @ d4096": as llama-bench of llama.cpp names them. */
struct trial_name {
    char text[64];
};

static struct trial_name trial_name(const struct trial *t)
{
    struct trial_name name;
    int at = snprintf(name.text, sizeof name.text, "%s%" PRId64, t->prompt ? "pp" : "tg",
                      t->prompt ? t->prompt : t->count);
    if (t->depth)
        snprintf(name.text + at, sizeof name.text - (size_t)at, " @ d%" PRId64, t->depth);
    return name;
}

static void print_table(const struct run *run)
{
    say("%-18s %10s %10s %10s %10s   (%d repetition%s)\n", "tokens per second", "median",
        "min", "p10", "p90", run->repetitions, run->repetitions == 1 ? "" : "s");
    for (int i = 0; i < run->trial_count; i++) {
        const struct spread r = run->trials[i].rate;
        say("%-18s %s%10.1f%s %10.1f %10.1f %10.1f\n", trial_name(&run->trials[i]).text,
            ink(BOLD), r.median, ink(PLAIN), r.min, r.p10, r.p90);
    }
}

json_t *bench_json(const struct run *run)
{
    json_t *rows = json_array();
    for (int i = 0; i < run->trial_count; i++) {
        const struct trial *t = &run->trials[i];
        json_array_append_new(
            rows,
            json_pack("{s:s, s:I, s:I, s:I, s:i, s:s, s:o}", "test", trial_name(t).text,
                      "prompt", (json_int_t)t->prompt, "tokens", (json_int_t)t->count,
                      "depth", (json_int_t)t->depth, "repetitions", run->repetitions,
                      "unit", "tok/s", "rate", spread_json(t->rate)));
    }
    return rows;
}

bool bench_run(struct run *run, struct fault *why)
{
    struct work work = { .run = run,
                         .prompt = calloc((size_t)bench_context(run), sizeof *work.prompt),
                         .rates = calloc((size_t)run->repetitions, sizeof *work.rates),
                         .total = (uint64_t)run->trial_count *
                                  (uint64_t)(run->repetitions + 1) };
    bool good = (work.prompt && work.rates) || fault(why, "out of memory");
    good = good && llama_fill(run->llama, why) && measure_all(&work, why);
    bar_draw("measuring", 1, 1);
    free(work.prompt);
    free(work.rates);
    run->ended = "measured";
    if (good && !out_json)
        print_table(run);
    return good;
}
