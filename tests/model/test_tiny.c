/* SPDX-License-Identifier: MIT */
/* test_tiny.c - a tiny random model of each kind, on every device present: the scores after
 * every token of a text, fed at once and token by token, against those that
 * tiny_models.py computed in double precision. And which of them may have heads in 16 bits. */
#include "model/llama/llama.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { MOST = 512 }; /* tokens and scores of a model */

static const char *directory;
static json_t *golden;
static struct hw_context *context;

static int open_all(void **state)
{
    (void)state;
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/tiny.json", directory);
    golden = json_load_file(path, 0, &error);
    if (!golden || hw_open(NULL, &context)) {
        fprintf(stderr, "%s: %s\n", path, golden ? hw_message() : error.text);
        return -1;
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hw_close(context);
    json_decref(golden);
    return 0;
}

/* The scores of one row differ from the golden ones by at most this part of their norm. */
static const double BOUND = 1e-5;

struct check {
    const json_t *rows;
    int64_t vocabulary;
    size_t done;
    double worst;
};

static void check_row(void *user, const float *scores)
{
    struct check *check = user;
    const json_t *wanted = json_array_get(check->rows, check->done++);
    double difference = 0, norm = 0;
    assert_int_equal(json_array_size(wanted), check->vocabulary);
    for (int64_t i = 0; i < check->vocabulary; i++) {
        const double want = json_number_value(json_array_get(wanted, (size_t)i));
        const double far = (double)scores[i] - want;
        difference += far * far;
        norm += want * want;
    }
    const double error = sqrt(difference / norm);
    if (!isnan(check->worst) && !(error <= check->worst))
        check->worst = error; /* a NaN stays */
}

static struct gguf *open_model(const char *name)
{
    struct fault why = { "" };
    char path[4096];
    snprintf(path, sizeof path, "%s/tiny-%s.gguf", directory, name);
    struct gguf *file = gguf_open(path, &why);
    if (!file)
        fail_msg("%s", why.text);
    return file;
}

/* `context_tokens` of the model; 0: as its file says. */
static struct llama *load(const struct gguf *file, struct hw_device *device,
                          int64_t context_tokens, const struct llama_settings *settings)
{
    struct fault why = { "" };
    struct shape shape;
    struct llama *llama = NULL;
    if (shape_read(file, &shape, &why)) {
        if (context_tokens)
            shape.context = context_tokens;
        llama = llama_load(file, &shape, device, settings, &why);
    }
    if (!llama)
        fail_msg("%s", why.text);
    return llama;
}

static double score_at_once(struct llama *llama, struct check check, const int32_t *tokens,
                            int64_t count)
{
    struct fault why = { "" };
    if (!llama_score(llama, tokens, count, check_row, &check, &why))
        fail_msg("%s", why.text);
    assert_int_equal(check.done, count);
    return check.worst;
}

static double score_in_steps(struct llama *llama, struct check check, const int32_t *tokens,
                             int64_t count)
{
    struct fault why = { "" };
    float scores[MOST];
    for (int64_t i = 0; i < count; i++) {
        if (!llama_feed(llama, tokens + i, 1, &why) || !llama_scores(llama, scores, &why))
            fail_msg("%s", why.text);
        check_row(&check, scores);
    }
    return check.worst;
}

static void check_model(const char *name, const json_t *entry, struct hw_device *device)
{
    const json_t *ids = json_object_get(entry, "tokens");
    struct gguf *file = open_model(name);
    struct llama *llama = load(file, device, 0,
                               &(struct llama_settings){ .score_rows = 4 });
    struct check check = { .rows = json_object_get(entry, "scores"),
                           .vocabulary = llama_vocabulary(llama) };
    const int64_t count = (int64_t)json_array_size(ids);
    int32_t tokens[MOST];
    assert_in_range(count, 2, MOST);
    assert_in_range(check.vocabulary, 2, MOST);
    for (int64_t i = 0; i < count; i++)
        tokens[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    const double at_once = score_at_once(llama, check, tokens, count);
    llama_rewind(llama, 0);
    const double in_steps = score_in_steps(llama, check, tokens, count);
    printf("# %s on %s: errors of %.1e at once and %.1e in steps\n", name,
           hw_device_name(device), at_once, in_steps);
    if (!(at_once <= BOUND && in_steps <= BOUND))
        fail_msg("%s: errors of %g and %g, expected at most %g", name, at_once, in_steps,
                 BOUND);
    llama_free(llama);
    gguf_close(file);
}

static void test_golden(void **state)
{
    (void)state;
    const char *name;
    json_t *entry;
    size_t checked = 0;
    json_object_foreach (golden, name, entry)
        for (uint32_t i = 0; i < hw_device_count(context); i++, checked++)
            check_model(name, entry, hw_device_at(context, i));
    assert_true(checked >= 9);
}

/* The scores after a large batch whose heads may be `heads_type`. */
static void score_large(const char *name, int32_t heads_type, float *scores)
{
    struct gguf *file = open_model(name);
    struct llama *llama = load(file, hw_device_at(context, 0), LLAMA_LARGE,
                               &(struct llama_settings){ .heads_type = heads_type });
    struct fault why = { "" };
    int32_t tokens[LLAMA_LARGE];
    assert_in_range(llama_vocabulary(llama), 2, MOST);
    for (int64_t i = 0; i < LLAMA_LARGE; i++)
        tokens[i] = (int32_t)(i * 7 % llama_vocabulary(llama));
    if (!llama_feed(llama, tokens, LLAMA_LARGE, &why) || !llama_scores(llama, scores, &why))
        fail_msg("%s", why.text);
    llama_free(llama);
    gguf_close(file);
}

/* Before their norm, elements of heads may be too large for f16. */
static void test_normed_heads_stay_f32(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        bool normed;
    } rows[] = { { "qwen3", true }, { "qwen2", false } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float wide[MOST] = { 0 }, narrow[MOST] = { 0 };
        score_large(rows[i].model, HW_F32, wide);
        score_large(rows[i].model, HW_F16, narrow);
        assert_int_equal(memcmp(wide, narrow, sizeof wide) == 0, rows[i].normed);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    directory = argv[1];
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_golden),
                                        cmocka_unit_test(test_normed_heads_stay_f32) };
    return cmocka_run_group_tests_name("tiny", tests, open_all, close_all);
}
