/* SPDX-License-Identifier: MIT */
/* run.c - `hw run`: text from a model file, the perplexity of a text, or the speed of the model. */
#define _POSIX_C_SOURCE 200809L
#include "run.h"
#include "command/bar.h"
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "command/watch.h"
#include "model/llama/random.h"
#include "util/clock.h"
#include "util/utf8.h"

#include <hw/report.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static const struct manual manual = {
    .about =
        "hw run - text from a model file, the perplexity of a text, or the model's speed\n\n"
        "Reads GGUF files of the llama, mistral3, qwen2 and qwen3 architectures. The text goes to\n"
        "standard output as it is produced, the summary to standard error. Without --temperature,\n"
        "it always takes the most probable token, so the same prompt gives the same text.",
    .arguments = "[OPTION...] MODEL.gguf | --shape NAME --bench",
    .notes =
        "  hw run models/bard-3m-Q8_0.gguf --prompt 'ROMEO:'\n"
        "  hw run MODEL.gguf --prompt 'Once' --temperature 0.8 --top-p 0.95 --seed 1\n"
        "  fortune | hw run MODEL.gguf --prompt -\n"
        "  hw run MODEL.gguf --device cpu --kv-type q8_0,q5_1 --json\n"
        "  hw run MODEL.gguf --perplexity text.txt\n"
        "  hw run MODEL.gguf --bench -p 512,2048 -n 128 --depth 0,4096\n"
        "  hw run --shape mistral-7b --type q4_K_M --bench\n\n"
        "Ctrl-C ends the text; the summary is still printed. The exit status is 1 on failure,\n"
        "and if Ctrl-C cut a perplexity short.",
};

enum {
    DEFAULT_COUNT = 128,
    MAX_SCORES = 4 << 20,
    LARGE_FILE = 256 << 20, /* bytes: packing such a file takes half a second or more */
    SHORT_PROMPT = 64       /* tokens: packing first would take longer than it saves */
};

/* ---- The options ---- */

bool run_whole(const char *option, const char *word, int64_t low, int64_t high,
               int64_t *value)
{
    char *end;
    if (!word)
        return true;
    errno = 0;
    const long long number = strtoll(word, &end, 10);
    if (errno || end == word || *end || number < low || number > high) {
        complain("%s: '%s' must be a whole number from %" PRId64 " to %" PRId64, option,
                 word, low, high);
        return false;
    }
    *value = number;
    return true;
}

static bool real(const char *option, const char *word, double low, double high,
                 double *value)
{
    char *end;
    if (!word)
        return true;
    const double number = strtod(word, &end);
    if (end == word || *end || !(number >= low && number <= high)) {
        complain("%s: '%s' must be a number from %g to %g", option, word, low, high);
        return false;
    }
    *value = number;
    return true;
}

static bool read_cache_type(const char *word, int32_t *type)
{
    static const int32_t types[] = { HW_F32,  HW_F16,  HW_BF16, HW_Q8_0,
                                     HW_Q5_1, HW_Q5_0, HW_Q4_1, HW_Q4_0 };
    enum { TYPES_OF_CACHE = sizeof types / sizeof *types };
    const char *names[TYPES_OF_CACHE + 1] = { NULL };
    for (int i = 0; i < TYPES_OF_CACHE; i++) {
        names[i] = hw_dtype_name(types[i]);
        if (!strcasecmp(word, names[i])) {
            *type = types[i];
            return true;
        }
    }
    if (*word)
        return is_known("type for the KV cache", word, names);
    return complain("--kv-type: a type is missing; give one, or two as in q8_0,q5_1"),
           false;
}

/* "K,V", or one type for both. */
static bool read_cache_types(const char *words, struct run *run)
{
    const char *comma = strchr(words, ',');
    char first[32];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(words, ","), words);
    return read_cache_type(first, &run->key_type) &&
           read_cache_type(comma ? comma + 1 : first, &run->value_type);
}

/* A different seed for each run, however quickly runs follow each other. */
static int64_t seed_of_chance(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    const uint64_t moment = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    return (int64_t)((moment ^ (uint64_t)getpid() << 24) & INT32_MAX);
}

/* --perplexity generates nothing, --bench no text, and a prompt has one source. */
static bool fits_together(const struct words *w)
{
    enum { PERPLEXITY = 1, BENCH = 2, TEXT = 4 };
    const int task = w->bench ? BENCH : w->perplexity ? PERPLEXITY : TEXT;
    const struct {
        const char *option, *word;
        int tasks; /* that accept it */
    } rows[] = {
        { "--perplexity", w->perplexity, PERPLEXITY },
        { "--prompt", w->prompt, TEXT | BENCH },
        { "--prompt-file", w->prompt_file, TEXT },
        { "--tokens", w->count, TEXT | BENCH },
        { "--temperature", w->temperature, TEXT },
        { "--top-k", w->top_k, TEXT },
        { "--top-p", w->top_p, TEXT },
        { "--seed", w->seed, TEXT },
        { "--context", w->context, TEXT | PERPLEXITY },
        { "--shape", w->shape, BENCH },
        { "--depth", w->depth, BENCH },
        { "--repetitions", w->repetitions, BENCH },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].word && rows[i].tasks == BENCH && task != BENCH)
            return complain("%s requires --bench", rows[i].option), false;
        else if (rows[i].word && !(rows[i].tasks & task))
            return complain("%s and %s exclude each other", rows[i].option,
                            w->bench ? "--bench" : "--perplexity"),
                   false;
    if (w->prompt && w->prompt_file)
        return complain("--prompt and --prompt-file exclude each other"), false;
    return true;
}

static bool read_precision(struct run *run)
{
    static const char *const names[] = { "fp32", "fp16", "int8", NULL };
    const char *word = run->words->precision;
    if (word && !is_known("precision", word, names))
        return false;
    snprintf(run->precision, sizeof run->precision, "%s", word ? word : "");
    return true;
}

/* A model is a file, or a shape and a type. */
static bool read_model(struct run *run)
{
    const struct words *w = run->words;
    if (run->path && w->shape)
        return complain("a model file and --shape exclude each other"), false;
    if (w->type && !w->shape)
        return complain("--type requires --shape"), false;
    if (!w->shape)
        return run->path ||
               (complain("the model file is missing; see hw run --help"), false);
    run->path = w->shape;
    run->known = random_shape(w->shape);
    run->type = w->type ? w->type : "bf16";
    run->recipe = recipe_find(run->type);
    return (run->known || is_known("shape", w->shape, random_names())) &&
           (run->recipe || is_known("type", run->type, recipe_names()));
}

/* Called before anything is opened. */
static bool read_words(struct run *run)
{
    const struct words *w = run->words;
    int64_t top_k = 0, seed = 0;
    run->count = DEFAULT_COUNT;
    run->sampling.top_p = 1;
    if (!fits_together(w) || !read_model(run) || !read_precision(run))
        return false;
    if (w->bench)
        return (!w->kv_type || read_cache_types(w->kv_type, run)) && bench_read(run);
    if (!run_whole("-n", w->count, 1, INT32_MAX, &run->count) ||
        !run_whole("--context", w->context, 1, INT32_MAX, &run->context) ||
        !real("--temperature", w->temperature, 0, 1000, &run->sampling.temperature) ||
        !run_whole("--top-k", w->top_k, 0, INT32_MAX, &top_k) ||
        !real("--top-p", w->top_p, 1e-9, 1, &run->sampling.top_p) ||
        !run_whole("--seed", w->seed, 0, INT64_MAX, &seed) ||
        (w->kv_type && !read_cache_types(w->kv_type, run)))
        return false;
    if (w->prompt && !*w->prompt)
        return complain("--prompt is empty; leave it out to begin a text"), false;
    if (!w->seed)
        seed = seed_of_chance();
    run->sampling.top_k = (int32_t)top_k;
    run->sampling.seed = (uint64_t)seed;
    return true;
}

static void loading(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    bar_draw("loading", done, total);
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

bool run_interrupted(void)
{
    return interrupted;
}

/* The first Ctrl-C ends the text, the second one the program. */
static void catch_interrupts(void)
{
    struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

/* ---- Opening ---- */

/* Appends everything that the stream has, up to the longest text that the tokenizer
 * accepts. */
static bool read_stream(FILE *stream, const char *name, struct text *text,
                        struct fault *why)
{
    char part[65536];
    for (size_t got; (got = fread(part, 1, sizeof part, stream)) > 0;) {
        if (!text_append(text, part, got))
            return fault(why, "%s: out of memory", name);
        if (text->length > TOKENIZER_TEXT)
            return fault(why, "%s: is longer than %s: give a shorter text", name,
                         size_text(TOKENIZER_TEXT).text);
    }
    return !ferror(stream) || fault(why, "%s: cannot be read: %s", name, strerror(errno));
}

static bool read_file(const char *path, struct text *text, struct fault *why)
{
    if (!*path)
        return fault(why, "the name of the file to read is empty");
    FILE *file = fopen(path, "rb");
    if (!file)
        return fault(why, "%s: cannot be opened: %s", path, strerror(errno));
    bool good = read_stream(file, path, text, why);
    fclose(file);
    if (good && text->length == 0)
        good = fault(why, "%s: is empty", path);
    return good;
}

/* The last line feed of a file or of standard input ends its last line, not the prompt. */
static void drop_line_feed(struct text *text)
{
    if (text->length && text->bytes[text->length - 1] == '\n')
        text->bytes[--text->length] = '\0';
}

static bool read_prompt(struct run *run, struct fault *why)
{
    const char *prompt = run->words->prompt, *file = run->words->prompt_file;
    const bool typed = prompt && strcmp(prompt, "-");
    bool good = true;

    run->prompted = prompt || file;
    if (typed)
        good = text_append(&run->input, prompt, strlen(prompt)) ||
               fault(why, "out of memory");
    else if (file)
        good = read_file(file, &run->input, why);
    else if (prompt)
        good = read_stream(stdin, "standard input", &run->input, why);
    if (good && run->prompted && !typed)
        drop_line_feed(&run->input);
    if (good && run->prompted && !run->input.length)
        good = fault(why, "the prompt is empty; leave it out to begin a text");
    return good;
}

/* The text continues the prompt, so an EOS at its end is dropped; the windows of --perplexity have
 * their own BOS. Text never becomes one of these tokens: see tokenizer_encode(). If one token is
 * both, the first of a text is BOS. */
static void drop_ends(struct run *run, bool bos)
{
    struct tokens *tokens = &run->prompt;
    const bool begins = tokens->count > 0 &&
                        tokens->ids[0] == tokenizer_bos(run->tokenizer);
    while (tokens->count > (size_t)begins &&
           tokenizer_is_end(run->tokenizer, tokens->ids[tokens->count - 1]))
        tokens->count--;
    if (bos && begins)
        memmove(tokens->ids, tokens->ids + 1, --tokens->count * sizeof *tokens->ids);
}

static bool encode(struct run *run, struct fault *why)
{
    const bool scored = run->words->perplexity;
    const bool good = scored ? read_file(run->words->perplexity, &run->input, why)
                             : read_prompt(run, why);
    if (!good || !tokenizer_encode(run->tokenizer, run->input.bytes, run->input.length,
                                   &run->prompt, why))
        return false;
    drop_ends(run, scored);
    if (run->prompt.count == 0)
        return fault(why, "%s: there is no token to begin with; %s", run->path,
                     scored ? "give a longer text" : "give a text to continue (--prompt)");
    return true;
}

static bool open_shape(struct run *run, struct fault *why)
{
    if (run->known) {
        run->shape = *run->known;
        run->file = random_model(run->path, run->known, run->recipe, why);
    } else {
        watch_file(run->path, NULL);
        run->file = gguf_open(run->path, why);
    }
    return run->file && (run->known || shape_read(run->file, &run->shape, why));
}

static bool open_tokenizer(struct run *run, struct fault *why)
{
    run->tokenizer = tokenizer_create(run->file, why);
    if (!run->tokenizer)
        return false;
    if (tokenizer_size(run->tokenizer) > run->shape.tokens)
        return fault(
            why,
            "%s: %" PRId32 " tokens in 'tokenizer.ggml.tokens', but a vocabulary of "
            "%" PRId64 " (%s.vocab_size, or the rows of the embedding); convert the "
            "model again",
            run->path, tokenizer_size(run->tokenizer), run->shape.tokens,
            run->shape.architecture);
    return true;
}

/* Finds out whether the environment or the configuration file sets the precision. All plugins are
 * excluded, so the first try fails: for want of a device, or because a setting is invalid. */
static bool read_setting(struct run *run, bool *set, struct fault *why)
{
    struct hw_options options = { .size = sizeof options, .disable = "*", .log = "off" };
    struct report report = { 0 };
    json_t *setting;
    size_t index;
    if (hw_open(&options, &report.context) != HW_NO_DEVICE)
        return fault(why, "%s", hw_message());
    options.flags = HW_OPEN_ANYWAY;
    if (hw_open(&options, &report.context))
        return fault(why, "%s", hw_message());
    const bool good = report_read(&report) || fault(why, "cannot read the settings");
    json_array_foreach (json_object_get(report.explain, "settings"), index, setting)
        if (!strcmp(text_of(setting, "variable"), "HW_PRECISION") &&
            strcmp(text_of(setting, "source"), "default")) {
            snprintf(run->precision, sizeof run->precision, "%s",
                     text_of(setting, "value"));
            *set = true;
        }
    report_close(&report);
    return good;
}

/* The precision of the most precise matrix: activations need no more bits. If every matrix has
 * blocks or 16 bits, activations are rounded to 8 bits only in products with blocks. */
static const char *precision_of(const struct gguf *file)
{
    const char *precision = "fp16";
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct gguf_tensor *t = &file->tensors[i];
        if (t->extents[1] <= 1)
            continue;
        if (t->type == GGUF_TYPE_F32)
            return "fp32";
        if (t->type != GGUF_TYPE_F16 && t->type != GGUF_TYPE_BF16)
            precision = "int8";
    }
    return precision;
}

/* Without an option or a setting, the weights decide; keys and values count as activations. */
static bool choose_precision(struct run *run, bool *set, struct fault *why)
{
    if (!*run->precision && !read_setting(run, set, why))
        return false;
    if (!*run->precision)
        snprintf(run->precision, sizeof run->precision, "%s", precision_of(run->file));
    if (!run->key_type)
        run->key_type = run->value_type = strcmp(run->precision, "fp32") ? HW_F16 : HW_F32;
    return true;
}

/* --device takes the same values as HW_BACKENDS: "cuda:0" is that device alone, "cuda,cpu" allows
 * the second as fallback. Other devices are not started. */
static bool open_device(struct run *run, struct fault *why)
{
    /* The environment or the configuration file has a precision. hw_open() reports if it is
     * invalid. */
    bool set = false;
    if (!choose_precision(run, &set, why))
        return false;
    const struct hw_options options = { .size = sizeof options,
                                        .backends = run->words->device,
                                        .precision = set ? NULL : run->precision,
                                        .start_fn = watch_start };
    if (hw_open(&options, &run->library))
        return fault(why, "%s%s", run->words->device ? "--device: " : "", hw_message());
    run->device = hw_device_default(run->library);
    return run->device || fault(why, "no device can be used; see 'hw status'");
}

/* Whether to pack after the first token: packing a large file takes seconds, and a short prompt is
 * computed sooner with the weights as stored. */
static bool starts_soon(const struct run *run)
{
    return !run->words->bench && !run->words->perplexity && run->file->size >= LARGE_FILE &&
           run->prompt.count <= SHORT_PROMPT;
}

/* Large batches have activations in 16 bits if the precision allows that, on devices with memory of
 * their own: ops other than products are limited by bytes there. */
static bool uses_16_bits(const struct run *run)
{
    struct hw_device_info info = { .size = sizeof info };
    return strcmp(run->precision, "fp32") != 0 && !hw_device_info(run->device, &info) &&
           !(info.features & HW_FEATURE_UNIFIED_MEMORY);
}

/* Keys and values are rounded to the type of the cache in any case. */
static int32_t heads_type(const struct run *run)
{
    const bool in_cache = run->key_type == HW_F16 && run->value_type == HW_F16;
    return uses_16_bits(run) && in_cache ? HW_F16 : HW_F32;
}

/* Gate and up are bf16 with weights in bf16, and with blocks if activations may be rounded to 8
 * bits. */
static uint32_t inner_bf16(const struct run *run)
{
    const bool blocks = strcmp(run->precision, "int8") == 0;
    uint32_t types = 1u << HW_BF16;
    for (int32_t type = 1; type < HW_DTYPE_END; type++)
        if (blocks && hw_dtype_block(type) > 1)
            types |= 1u << type;
    return uses_16_bits(run) ? types : 0;
}

/* The cache has room for the tokens of this run, at most the model's context. */
static bool load(struct run *run, struct fault *why)
{
    const int64_t limit = run->shape.context, prompt = (int64_t)run->prompt.count;
    int64_t context = run->words->bench ? bench_context(run) : run->context;
    if (context > limit && run->words->bench)
        return fault(why,
                     "%s: the longest test has %" PRId64
                     " tokens, the model allows at most %" PRId64,
                     run->path, context, limit);
    if (context > limit)
        return fault(why, "--context %" PRId64 ": the model allows at most %" PRId64,
                     context, limit);
    if (!context)
        context = run->words->perplexity || prompt + run->count > limit
                      ? limit
                      : prompt + run->count;
    if (!run->words->perplexity && prompt >= context)
        return fault(why,
                     "the prompt has %" PRId64 " tokens, the context %" PRId64
                     "; shorten the prompt to leave room for the text",
                     prompt, context);
    const int64_t rows = MAX_SCORES / run->shape.vocabulary;
    const struct llama_settings settings = {
        .key_type = run->key_type,
        .value_type = run->value_type,
        .heads_type = heads_type(run),
        .inner_bf16 = inner_bf16(run),
        .context = context,
        .score_rows = run->words->perplexity && rows > 0 ? rows : 1,
        .pack = !run->words->no_pack,
        .pack_later = starts_soon(run),
        .progress = loading,
    };
    run->llama = llama_load(run->file, &run->shape, run->device, &settings, why);
    return run->llama;
}

/* ---- Text ---- */

/* A model must not control the terminal: of the control characters only line feed and tab are
 * printed there. */
static void print_text(const char *bytes, size_t length)
{
    if (!out_is_terminal()) {
        fwrite(bytes, 1, length, out_file);
        return;
    }
    for (size_t i = 0, size; i < length; i += size) {
        const bool blank = bytes[i] == '\n' || bytes[i] == '\t';
        size = blank ? 1 : utf8_printable_at(bytes + i, length - i);
        if (size)
            fwrite(bytes + i, 1, size, out_file);
        else
            fputc('?', out_file);
        size = size ? size : 1;
    }
}

/* Adds a token to the text, and prints its complete characters. */
static bool emit(struct run *run, int32_t token, struct fault *why)
{
    const size_t before = run->text.length;
    run->generated[run->generated_count++] = token;
    if (!tokenizer_decode(run->tokenizer, &run->decoder, token, &run->text))
        return fault(why, "out of memory");
    if (out_json || run->text.length == before)
        return true;
    print_text(run->text.bytes + before, run->text.length - before);
    if (out_flush() == 0)
        return true;
    if (!out_is_closed()) {
        clearerr(out_file); /* reported here, with its reason, and not again by out_end() */
        return fault(why, "cannot write the output: %s", strerror(errno));
    }
    run->ended = "reader gone";
    return true;
}

static bool choose(struct run *run, struct sampler *sampler, float *scores, int32_t *token,
                   struct fault *why)
{
    if (!llama_scores(run->llama, scores, why))
        return false;
    *token = sampler_choose(sampler, scores);
    return *token >= 0 ||
           fault(why, "the model's scores are not numbers; its weights are damaged, or a "
                      "kernel is wrong (see 'hw verify')");
}

/* Emits a token, and checks whether it ends the text; `left`: how many may follow. */
static bool take(struct run *run, int32_t token, int64_t left, struct fault *why)
{
    if (tokenizer_is_end(run->tokenizer, token))
        run->ended = "end of text";
    else if (!emit(run, token, why))
        return false;
    else if (run->generated_count == run->count)
        run->ended = "count";
    else if (!run->ended && left == 0)
        run->ended = "context full";
    else if (interrupted)
        run->ended = "interrupted";
    return true;
}

/* Packs a part of the weights, after each token but the last: see starts_soon(). */
static bool pack_part(struct run *run, struct fault *why)
{
    return run->ended || llama_pack_part(run->llama, why);
}

/* Takes the most probable token repeatedly, after `token`, which the device has. If the device
 * works asynchronously, the text is one step behind it. */
static bool go_on_greedily(struct run *run, int32_t token, struct fault *why)
{
    const int64_t room = llama_context(run->llama) - llama_length(run->llama);
    const int64_t most = run->count - 1 < room ? run->count - 1 : room;
    const int64_t ahead = llama_runs_ahead(run->llama) ? 2 : 1;
    int64_t started = 0;
    bool good = take(run, token, room, why) && pack_part(run, why);
    while (good && !run->ended) {
        while (good && started < most && started < run->steps + ahead) {
            good = llama_advance(run->llama, why);
            started++;
        }
        good = good && llama_next(run->llama, &token, why);
        run->steps += good;
        good = good && take(run, token, room - run->steps, why) && pack_part(run, why);
    }
    return good;
}

/* Draws tokens on the host. */
static bool go_on_drawing(struct run *run, struct sampler *sampler, float *scores,
                          int32_t token, struct fault *why)
{
    const int64_t room = llama_context(run->llama) - llama_length(run->llama);
    bool good = take(run, token, room, why) && pack_part(run, why);
    while (good && !run->ended) {
        good = llama_feed(run->llama, &token, 1, why) &&
               choose(run, sampler, scores, &token, why);
        run->steps += good;
        good = good && take(run, token, room - run->steps, why) && pack_part(run, why);
    }
    return good;
}

/* Generates until something ends the text; `token` is the first. The host always chooses that
 * one, to notice scores that are not numbers. Among equal scores, host and device both take the
 * first. */
static bool go_on(struct run *run, struct sampler *sampler, float *scores, int32_t token,
                  struct fault *why)
{
    const double start = now(), packing = llama_memory(run->llama).pack_seconds;
    const bool good = run->sampling.temperature > 0
                          ? go_on_drawing(run, sampler, scores, token, why)
                          : go_on_greedily(run, token, why);
    /* The time of packing is reported separately. */
    run->step_seconds = now() - start - (llama_memory(run->llama).pack_seconds - packing);
    return good;
}

static bool generate(struct run *run, struct fault *why)
{
    const size_t most = (size_t)llama_context(run->llama) - run->prompt.count + 1;
    struct sampler *sampler = sampler_create(&run->sampling,
                                             (int32_t)run->shape.vocabulary);
    float *scores = malloc((size_t)run->shape.vocabulary * sizeof *scores);
    run->generated = malloc(most * sizeof *run->generated);
    int32_t token = 0;
    const double start = now();
    bool good = (sampler && scores && run->generated) || fault(why, "out of memory");
    good = good &&
           llama_feed(run->llama, run->prompt.ids, (int64_t)run->prompt.count, why) &&
           choose(run, sampler, scores, &token, why);
    run->prompt_seconds = now() - start;
    good = good && go_on(run, sampler, scores, token, why);
    free(scores);
    sampler_destroy(sampler);
    return good;
}

/* On a terminal the prompt is printed first, so that the text reads as a whole. */
static bool write_text(struct run *run, struct fault *why)
{
    if (run->prompted && !out_json && out_is_terminal()) {
        fputs(ink(BOLD), out_file);
        print_text(run->input.bytes, run->input.length);
        fputs(ink(PLAIN), out_file);
    }
    run->decoder.started = run->prompted;
    if (!generate(run, why))
        return false;
    const size_t before = run->text.length;
    if (!tokenizer_decode_end(&run->decoder, &run->text))
        return fault(why, "out of memory");
    if (out_json)
        return true;
    if (run->text.length > before)
        print_text(run->text.bytes + before, run->text.length - before);
    fputc('\n', out_file);
    return true;
}

/* ---- Perplexity ---- */

static bool next_window(void *user, int64_t done, int64_t windows)
{
    (void)user;
    bar_draw("scoring", (uint64_t)done, (uint64_t)windows);
    return !interrupted;
}

static bool score_text(struct run *run, struct fault *why)
{
    const bool good = perplexity_measure(
        run->llama, run->prompt.ids, (int64_t)run->prompt.count,
        tokenizer_bos(run->tokenizer), next_window, NULL, &run->perplexity, why);
    const struct perplexity *p = &run->perplexity;
    bar_draw("scoring", 1, 1);
    if (!good)
        return false;
    if (p->tokens == 0)
        return fault(why, interrupted
                              ? "interrupted before the first window was done"
                              : "a single token cannot be scored, since nothing precedes "
                                "it; give a longer text");
    run->ended = p->tokens < p->wanted ? "interrupted" : "end of text";
    if (!out_json) {
        say("perplexity %.4f  (%.6f nats per token; ", exp(p->nll / (double)p->tokens),
            p->nll / (double)p->tokens);
        if (p->tokens < p->wanted)
            say("interrupted after %" PRId64 " of %" PRId64, p->tokens, p->wanted);
        else
            say("%" PRId64, p->tokens);
        say(" tokens in windows of %" PRId64 ")\n", llama_context(run->llama));
    }
    return true;
}

/* ---- The command ---- */

static void close_all(struct run *run)
{
    llama_free(run->llama);
    hw_close(run->library);
    tokenizer_destroy(run->tokenizer);
    gguf_close(run->file);
    free(run->prompt.ids);
    free(run->generated);
    free(run->text.bytes);
    free(run->input.bytes);
}

static bool open_all(struct run *run, struct fault *why)
{
    const double start = now();
    double reading; /* of the prompt, which a person may be typing */

    if (!open_shape(run, why) || (!run->words->bench && !open_tokenizer(run, why)))
        return false;
    reading = now();
    if (!run->words->bench && !encode(run, why))
        return false;
    reading = now() - reading;
    if (!open_device(run, why))
        return false;
    if (!run->known)
        watch_file(run->path,
                   run->device); /* opening the device has watched the plugins instead */
    if (!load(run, why))
        return false;
    run->load_seconds = now() - start - reading;
    return true;
}

static int run_model(struct run *run)
{
    static struct fault why; /* large */
    bool good = open_all(run, &why);
    if (good) {
        catch_interrupts();
        good = run->words->bench        ? bench_run(run, &why)
               : run->words->perplexity ? score_text(run, &why)
                                        : write_text(run, &why);
    }
    if (!good)
        complain("%s", why.text);
    else if (out_json)
        run_tell_json(run);
    else if (out_flush() == 0)
        run_tell(run);
    /* A partial score is a failure; a text may end anywhere. */
    good = good && run->perplexity.tokens == run->perplexity.wanted;
    close_all(run);
    return good ? EXIT_SUCCESS : EXIT_FAILED;
}

static void free_words(struct words *w)
{
    char *all[] = { w->prompt,  w->prompt_file, w->perplexity,  w->device,
                    w->kv_type, w->count,       w->context,     w->temperature,
                    w->top_k,   w->top_p,       w->seed,        w->shape,
                    w->type,    w->depth,       w->repetitions, w->precision };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

int cmd_run(int argc, const char **argv)
{
    struct words w = { 0 };
    const struct poptOption table[] = {
        { "prompt", 'p', POPT_ARG_STRING, &w.prompt, 0,
          "the text to continue; -: read it from standard input", "TEXT" },
        { "prompt-file", 'f', POPT_ARG_STRING, &w.prompt_file, 0,
          "read the text to continue from a file", "FILE" },
        { "tokens", 'n', POPT_ARG_STRING, &w.count, 0, "how many tokens to produce (128)",
          "N" },
        { "temperature", 't', POPT_ARG_STRING, &w.temperature, 0,
          "divides the scores; 0: always the most probable token (0)", "T" },
        { "top-k", '\0', POPT_ARG_STRING, &w.top_k, 0,
          "draw from the K most probable tokens (0: from all)", "K" },
        { "top-p", '\0', POPT_ARG_STRING, &w.top_p, 0,
          "draw from the most probable tokens that together reach P (1: from all)", "P" },
        { "seed", '\0', POPT_ARG_STRING, &w.seed, 0,
          "seed of the random numbers, 0 to 2^63-1 (different each time)", "S" },
        { "device", 'd', POPT_ARG_STRING, &w.device, 0,
          "as in HW_BACKENDS: cpu, cuda:0, 'cuda,cpu' (the recommended one)", "D" },
        { "kv-type", '\0', POPT_ARG_STRING, &w.kv_type, 0,
          "types of keys and values in the KV cache, or one for both: f32, f16, bf16, q8_0, "
          "q5_1, q5_0, q4_1, q4_0 (f16; f32 with --precision fp32)",
          "K[,V]" },
        { "precision", '\0', POPT_ARG_STRING, &w.precision, 0,
          "as in HW_PRECISION: fp32, fp16, int8 (fp32 if a matrix is f32, else int8 if one "
          "has blocks, else fp16)",
          "P" },
        { "no-pack", '\0', POPT_ARG_NONE, &w.no_pack, 0,
          "use the weights as they are stored, without a copy in the device's own layout",
          NULL },
        { "context", '\0', POPT_ARG_STRING, &w.context, 0,
          "tokens that the KV cache has room for (as needed; the model's for --perplexity)",
          "N" },
        { "perplexity", '\0', POPT_ARG_STRING, &w.perplexity, 0,
          "score this text instead of producing one", "FILE" },
        { "bench", '\0', POPT_ARG_NONE, &w.bench, 0,
          "measure instead: reading -p tokens (512), and producing -n tokens (128)", NULL },
        { "depth", '\0', POPT_ARG_STRING, &w.depth, 0,
          "--bench: tokens in the cache before each measurement (0)", "N[,N...]" },
        { "repetitions", 'r', POPT_ARG_STRING, &w.repetitions, 0,
          "--bench: repetitions of each measurement (5)", "N" },
        { "shape", '\0', POPT_ARG_STRING, &w.shape, 0,
          "--bench: random weights instead of a file: tiny, tinyllama, llama-2-7b, "
          "mistral-7b, llama-3-8b",
          "NAME" },
        { "type", '\0', POPT_ARG_STRING, &w.type, 0,
          "--shape: the type of its weights, as hw quantize takes it (bf16)", "TYPE" },
        OPTIONS_COMMON,
        POPT_TABLEEND,
    };
    struct arguments arguments;
    struct run run = { .words = &w };
    int status = EXIT_USAGE;
    if (options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        run.path = arguments.words[0];
        status = read_words(&run) ? run_model(&run) : EXIT_USAGE;
    }
    options_close(&arguments);
    free_words(&w);
    return status;
}
