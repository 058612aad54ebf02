/* SPDX-License-Identifier: MIT */
/* bard.c - see bard.h. */
#include "bard.h"

#include <math.h>

const char *model_path;
uint8_t *model_bytes;
size_t model_size;
struct gguf *model;
struct hw_device *device;
struct hw_context *context;

int bard_open(void **state)
{
    (void)state;
    struct fault why = { "" };
    const struct hw_options options = { .size = sizeof options, .backends = "cpu" };
    model_bytes = slurp(model_path, &model_size);
    model = model_bytes ? gguf_parse(model_bytes, model_size, "bard.gguf", &why) : NULL;
    if (!model || hw_open(&options, &context)) {
        fprintf(stderr, "%s%s\n", why.text, model ? hw_message() : "");
        return -1;
    }
    device = hw_device_default(context);
    return 0;
}

int bard_close(void **state)
{
    (void)state;
    hw_close(context);
    gguf_close(model);
    free(model_bytes);
    return 0;
}

struct llama *load(const struct gguf *file, const struct llama_settings *settings)
{
    struct fault why = { "" };
    struct shape shape;
    struct llama *llama = NULL;
    if (shape_read(file, &shape, &why))
        llama = llama_load(file, &shape, device, settings, &why);
    if (!llama)
        fail_msg("%s", why.text);
    return llama;
}

void feed(struct llama *llama, const int32_t *tokens, int64_t count)
{
    struct fault why = { "" };
    if (!llama_feed(llama, tokens, count, &why))
        fail_msg("%s", why.text);
}

void scores_of(struct llama *llama, float *scores)
{
    struct fault why = { "" };
    if (!llama_scores(llama, scores, &why))
        fail_msg("%s", why.text);
}

const int32_t text[TEXT] = { 1,   870, 983, 13,  988, 260, 267, 558, 975, 269,  542, 975,
                             301, 269, 542, 332, 307, 476, 984, 13,  13,  1008, 573, 339 };

void score_text(const struct gguf *file, int32_t kv_type, float *scores)
{
    const struct llama_settings settings = { .key_type = kv_type,
                                             .value_type = kv_type,
                                             .context = 32 };
    struct llama *llama = load(file, &settings);
    feed(llama, text, TEXT);
    scores_of(llama, scores);
    llama_free(llama);
}

double distance(const float *a, const float *b)
{
    double difference = 0, norm = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

void assert_near(const float *scores, const float *wanted, double bound, const char *what)
{
    const double far = distance(scores, wanted);
    if (!(far <= bound))
        fail_msg("%s: the error is %g, expected at most %g", what, far, bound);
}
