/* SPDX-License-Identifier: MIT */
/* test_llama.c - a real model through the library: the golden tokens and scores; the same scores
 * however the text is fed; each type of the cache; perplexity. */
#include "bard.h"
#include "model/llama/perplexity.h"

#include <math.h>

#include <hw/report.h>
#include <jansson.h>

static const char *golden_path;

/* ---- The golden file ---- */

static void check_first_scores(struct llama *llama, const json_t *entry)
{
    const json_t *head = json_object_get(entry, "first_logits_head");
    float scores[VOCABULARY];
    double norm = 0;
    scores_of(llama, scores);
    assert_int_equal(json_array_size(head), 16);
    for (size_t i = 0; i < json_array_size(head); i++) {
        const double wanted = json_real_value(json_array_get(head, i));
        if (!(fabs((double)scores[i] - wanted) <= 1e-4))
            fail_msg("score %zu is %.9g, expected %.9g", i, (double)scores[i], wanted);
    }
    for (int i = 0; i < VOCABULARY; i++)
        norm += (double)scores[i] * (double)scores[i];
    const double wanted = json_real_value(json_object_get(entry, "first_logits_l2"));
    if (!(fabs(sqrt(norm) - wanted) <= 1e-4 * wanted))
        fail_msg("the norm of the scores is %.9g, expected %.9g", sqrt(norm), wanted);
}

static void check_entry(struct llama *llama, const json_t *entry)
{
    const json_t *prompt = json_object_get(entry, "prompt_ids");
    const json_t *answer = json_object_get(entry, "greedy_ids");
    struct fault why;
    int32_t ids[16];
    assert_in_range(json_array_size(prompt), 1, 16);
    for (size_t i = 0; i < json_array_size(prompt); i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(prompt, i));
    llama_rewind(llama, 0);
    feed(llama, ids, (int64_t)json_array_size(prompt));
    check_first_scores(llama, entry);
    assert_int_equal(json_array_size(answer), 64);
    for (size_t i = 0; i < json_array_size(answer); i++) {
        int32_t token;
        assert_true(llama_best(llama, &token, &why));
        assert_int_equal(token, json_integer_value(json_array_get(answer, i)));
        feed(llama, &token, 1);
    }
}

static void check_golden(const struct gguf *file, const char *type)
{
    json_error_t error;
    json_t *golden = json_load_file(golden_path, 0, &error), *entry;
    size_t index;
    if (!golden)
        fail_msg("%s: %s", golden_path, error.text);
    const json_t *entries = json_object_get(golden, type);
    assert_in_range(json_array_size(entries), 2, 100);
    for (uint32_t i = 0; i < hw_device_count(context); i++) {
        device = hw_device_at(context, i);
        const struct llama_settings settings = { .context = 128 };
        struct llama *llama = load(file, &settings);
        json_array_foreach ((json_t *)entries, index, entry)
            check_entry(llama, entry);
        llama_free(llama);
        printf("# golden %s on %s\n", type, hw_device_name(device));
    }
    device = hw_device_default(context);
    json_decref(golden);
}

static void test_golden_q8_0(void **state)
{
    (void)state;
    check_golden(model, "Q8_0");
}

/* The F16 file is too large for the repository. HW_TEST_MODELS names its directory. */
static void test_golden_f16(void **state)
{
    (void)state;
    const char *directory = getenv("HW_TEST_MODELS");
    char path[4096] = "";
    struct fault why;
    if (directory)
        snprintf(path, sizeof path, "%s/bard-3m-F16.gguf", directory);
    struct gguf *file = directory ? gguf_open(path, &why) : NULL;
    if (!file)
        skip();
    check_golden(file, "F16");
    gguf_close(file);
}

/* ---- Comparisons ---- */

static void test_batch_equals_steps(void **state)
{
    (void)state;
    const struct llama_settings settings = { .context = TEXT };
    float at_once[VOCABULARY], one_by_one[VOCABULARY], mixed[VOCABULARY];
    struct llama *llama = load(model, &settings);
    feed(llama, text, TEXT);
    scores_of(llama, at_once);
    llama_rewind(llama, 0);
    for (int i = 0; i < TEXT; i++)
        feed(llama, &text[i], 1);
    scores_of(llama, one_by_one);
    llama_rewind(llama, 0);
    feed(llama, text, 7);
    feed(llama, text + 7, 1);
    feed(llama, text + 8, TEXT - 8);
    scores_of(llama, mixed);
    assert_near(one_by_one, at_once, 1e-5, "step by step");
    assert_near(mixed, at_once, 1e-5, "in parts");

    struct hw_graph_info info = { .size = sizeof info };
    if (llama_graph(llama)) {
        assert_int_equal(hw_graph_info(llama_graph(llama), &info), HW_OK);
        assert_int_equal(info.nodes, 2 + 15 * LAYERS + 2);
    }
    llama_free(llama);
}

static int32_t best_of(struct llama *llama)
{
    struct fault why = { "" };
    int32_t token = -1;
    if (!llama_best(llama, &token, &why))
        fail_msg("%s", why.text);
    return token;
}

static int32_t next_of(struct llama *llama)
{
    struct fault why = { "" };
    int32_t token = -1;
    if (!llama_next(llama, &token, &why))
        fail_msg("%s", why.text);
    return token;
}

static void advance(struct llama *llama)
{
    struct fault why = { "" };
    if (!llama_advance(llama, &why))
        fail_msg("%s", why.text);
}

/* Steps that are submitted ahead of the host give the tokens of steps that wait for each other. */
static void test_ahead(void **state)
{
    enum { AHEAD = 4, ROUNDS = 3 };
    const struct llama_settings settings = { .context = TEXT + AHEAD * ROUNDS + 1 };
    struct llama *llama = load(model, &settings);
    struct fault why;
    int32_t wanted[AHEAD * ROUNDS + 1], token;
    (void)state;
    feed(llama, text, TEXT);
    for (int i = 0; i <= AHEAD * ROUNDS; i++) {
        wanted[i] = best_of(llama);
        feed(llama, &wanted[i], 1);
    }
    llama_rewind(llama, 0);
    feed(llama, text, TEXT);
    for (int i = 0; i < AHEAD * ROUNDS; i += AHEAD) {
        for (int j = 0; j < AHEAD; j++)
            advance(llama);
        assert_false(llama_advance(llama, &why));
        assert_string_equal(why.text, "4 tokens wait for llama_next()");
        for (int j = 0; j < AHEAD; j++)
            assert_int_equal(next_of(llama), wanted[1 + i + j]);
    }
    assert_false(llama_next(llama, &token, &why));
    assert_int_equal(llama_length(llama), TEXT + AHEAD * ROUNDS);
    /* A token that is fed replaces the best one, and drops results that nobody took. */
    llama_rewind(llama, TEXT + 1);
    feed(llama, &wanted[1], 1);
    advance(llama);
    llama_rewind(llama, TEXT + 2);
    feed(llama, &wanted[2], 1);
    advance(llama);
    assert_int_equal(next_of(llama), wanted[4]);
    llama_rewind(llama, llama_context(llama));
    assert_false(llama_advance(llama, &why));
    llama_free(llama);
}

/* Counted by the linker's --wrap. */
static int graphs_freed;
void __wrap_hw_graph_free(struct hw_graph *graph);
void __real_hw_graph_free(struct hw_graph *graph);

void __wrap_hw_graph_free(struct hw_graph *graph)
{
    graphs_freed++;
    __real_hw_graph_free(graph);
}

static void pack_part(struct llama *llama)
{
    struct fault why = { "" };
    if (!llama_pack_part(llama, &why))
        fail_msg("%s", why.text);
}

/* Weights that are packed after the first token: before, they are used as they are stored; then as
 * if they had been packed at once, by prompts and by steps. */
static void test_packed_later(void **state)
{
    enum { STEPS = 5 };
    const struct llama_settings at_once = { .context = TEXT + STEPS, .pack = true },
                                later = { .context = TEXT + STEPS,
                                          .pack = true,
                                          .pack_later = true };
    float wanted[VOCABULARY], scores[VOCABULARY];
    (void)state;
    struct llama *packed = load(model, &at_once), *llama = load(model, &later);
    const struct llama_memory before = llama_memory(llama), end = llama_memory(packed);
    assert_true(before.packed == 0 && before.pack_seconds == 0 && before.mapped > 0);
    feed(llama, text, TEXT);
    feed(packed, text, TEXT);
    scores_of(packed, wanted);
    scores_of(llama, scores);
    assert_near(scores, wanted, 2e-2, "before");
    pack_part(llama);
    assert_true(llama_memory(llama).packed == end.packed);
    assert_true(llama_memory(llama).mapped == end.mapped);
    for (int i = 0; i < STEPS; i++) {
        feed(packed, &text[i], 1);
        feed(llama, &text[i], 1);
        scores_of(packed, wanted);
        scores_of(llama, scores);
        assert_near(scores, wanted, 2e-2, "after");
        pack_part(llama); /* none is left */
    }
    llama_rewind(packed, 0);
    llama_rewind(llama, 0);
    feed(packed, text, TEXT);
    feed(llama, text, TEXT);
    scores_of(packed, wanted);
    scores_of(llama, scores);
    assert_near(scores, wanted, 0, "a prompt after");
    llama_free(packed);
    llama_free(llama);
}

/* The device packs none of them: the step stays as it is, and nothing is asked twice. */
static void test_none_packed(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "cpu",
                                        .kernel = "portable" };
    const struct llama_settings settings = { .context = TEXT,
                                             .pack = true,
                                             .pack_later = true };
    struct hw_context *own;
    struct hw_device *usual = device;
    (void)state;
    assert_int_equal(hw_open(&options, &own), HW_OK);
    device = hw_device_default(own);
    struct llama *llama = load(model, &settings);
    feed(llama, text, 1);
    const int freed = graphs_freed;
    for (int i = 0; i < 3; i++)
        pack_part(llama);
    assert_int_equal(graphs_freed, freed);
    assert_true(llama_memory(llama).packed == 0 && llama_memory(llama).mapped > 0);
    feed(llama, text, 1);
    llama_free(llama);
    hw_close(own);
    device = usual;
}

/* Feeding more than the cache holds fails. The tokens fed before remain valid. */
static void test_full_cache(void **state)
{
    (void)state;
    const struct llama_settings settings = { .context = TEXT };
    struct fault why = { "" };
    struct llama *llama = load(model, &settings);
    float before[VOCABULARY], after[VOCABULARY];
    assert_false(llama_feed(llama, text, TEXT + 1, &why));
    assert_non_null(strstr(why.text, "exceed the context of 24"));
    feed(llama, text, TEXT);
    scores_of(llama, before);
    assert_false(llama_feed(llama, text, 1, &why));
    assert_non_null(strstr(why.text, "1 tokens after 24 exceed the context"));
    scores_of(llama, after);
    assert_near(after, before, 0, "after a refusal");
    assert_int_equal(llama_length(llama), TEXT);
    llama_free(llama);
}

static void test_kv_types(void **state)
{
    (void)state;
    static const struct {
        int32_t type;
        double bound;
    } rows[] = { { HW_F16, 1e-3 }, { HW_BF16, 8e-3 }, { HW_Q8_0, 1e-2 } };
    float wanted[VOCABULARY], scores[VOCABULARY];
    score_text(model, HW_F32, wanted);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        score_text(model, rows[i].type, scores);
        assert_near(scores, wanted, rows[i].bound, hw_dtype_name(rows[i].type));
        assert_true(distance(scores, wanted) > 0); /* the cache has another type */
    }
}

/* A long text is fed in batches of any size: the last may be full, short or one token. */
static void test_batches(void **state)
{
    (void)state;
    float wanted[VOCABULARY], scores[VOCABULARY];
    score_text(model, HW_F32, wanted);
    for (int64_t batch = 1; batch < TEXT; batch += 1 + batch / 4) {
        struct llama *llama = load(model, &(struct llama_settings){ .batch = batch });
        assert_int_equal(llama_context(llama), 512);
        feed(llama, text, 5);
        feed(llama, text + 5, TEXT - 5);
        scores_of(llama, scores);
        assert_near(scores, wanted, 1e-5, "a text in batches");
        llama_free(llama);
    }
}

enum { LARGE = LLAMA_LARGE };

/* The scores after `count` tokens, the text again and again. */
static void score_batch(const struct llama_settings *settings, int64_t count, float *scores)
{
    int32_t tokens[LARGE];
    for (int64_t i = 0; i < count; i++)
        tokens[i] = text[i % TEXT];
    struct llama *llama = load(model, settings);
    feed(llama, tokens, count);
    scores_of(llama, scores);
    llama_free(llama);
}

/* If the settings allow it, large batches have activations in 16 bits; small ones never do. */
static void test_16_bit_activations(void **state)
{
    (void)state;
    const struct llama_settings plain = { .context = LARGE };
    static const struct {
        struct llama_settings settings;
        double bound;
    } rows[] = {
        { { .context = LARGE, .heads_type = HW_F16 }, 1e-3 },
        { { .context = LARGE, .heads_type = HW_BF16 }, 8e-3 },
        { { .context = LARGE, .inner_bf16 = 1u << HW_Q8_0 }, 8e-3 },
    };
    const struct llama_settings others = { .context = LARGE, .inner_bf16 = 1u << HW_BF16 };
    float wanted[VOCABULARY], smaller[VOCABULARY], scores[VOCABULARY];
    score_batch(&plain, LARGE, wanted);
    score_batch(&plain, LARGE - 1, smaller);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        score_batch(&rows[i].settings, LARGE, scores);
        assert_near(scores, wanted, rows[i].bound, "a large batch");
        assert_true(distance(scores, wanted) > 0);
        score_batch(&rows[i].settings, LARGE - 1, scores);
        assert_near(scores, smaller, 0, "a smaller batch");
    }
    score_batch(&others, LARGE, scores); /* the weights are q8_0 */
    assert_near(scores, wanted, 0, "beside weights of another type");
}

/* ---- Perplexity ---- */

static void test_likelihood(void **state)
{
    (void)state;
    const float even[4] = { 3, 3, 3, 3 }, steep[3] = { 0, 1000, -1000 };
    const float broken[2] = { NAN, 1 }, infinite[2] = { -INFINITY, 0 };
    assert_true(fabs(negative_log_likelihood(even, 4, 2) - log(4)) < 1e-12);
    assert_true(negative_log_likelihood(steep, 3, 1) == 0);
    assert_true(negative_log_likelihood(steep, 3, 2) == 2000);
    assert_true(negative_log_likelihood(infinite, 2, 1) == 0);
    assert_true(isinf(negative_log_likelihood(infinite, 2, 0)));
    assert_true(isnan(negative_log_likelihood(broken, 2, 1)));
}

static bool two_windows(void *user, int64_t done, int64_t windows)
{
    *(int64_t *)user = windows;
    return done < 2;
}

/* The sum over windows equals that of single steps, for any number of tokens scored at
 * once. */
static void test_perplexity(void **state)
{
    (void)state;
    enum { WINDOW = 9 };
    struct fault why = { "" };
    const int32_t *words = text + 1; /* without BOS */
    float scores[VOCABULARY];
    double wanted = 0;
    struct llama *llama = load(model, &(struct llama_settings){ .context = WINDOW });
    for (int i = 0; i < TEXT - 1; i++) {
        if (i % WINDOW == 0)
            llama_rewind(llama, 0);
        feed(llama, i % WINDOW == 0 ? &text[0] : &words[i - 1], 1);
        scores_of(llama, scores);
        wanted += negative_log_likelihood(scores, VOCABULARY, words[i]);
    }
    llama_free(llama);
    for (int64_t rows = 1; rows <= 16; rows += 3) {
        struct perplexity p;
        const struct llama_settings settings = { .context = WINDOW, .score_rows = rows };
        llama = load(model, &settings);
        if (!perplexity_measure(llama, words, TEXT - 1, 1, NULL, NULL, &p, &why))
            fail_msg("%s", why.text);
        assert_int_equal(p.tokens, TEXT - 1);
        assert_int_equal(p.windows, 3);
        assert_true(fabs(p.nll - wanted) < 1e-3);

        int64_t windows = 0;
        assert_true(perplexity_measure(llama, words, TEXT - 1, -1, two_windows, &windows,
                                       &p, &why));
        assert_int_equal(windows, 3);
        assert_int_equal(p.tokens, 2 * WINDOW);
        assert_int_equal(p.wanted, TEXT - 2);

        assert_true(perplexity_measure(llama, words, 1, -1, NULL, NULL, &p, &why));
        assert_int_equal(p.tokens, 0);
        llama_free(llama);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.gguf GOLDEN.json\n", argv[0]);
        return 2;
    }
    model_path = argv[1];
    golden_path = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_q8_0),
        /* The name is shown as the reason for a skip. */
        { "golden F16: HW_TEST_MODELS leads to bard-3m-F16.gguf", test_golden_f16, NULL,
          NULL, NULL },
        cmocka_unit_test(test_batch_equals_steps),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_packed_later),
        cmocka_unit_test(test_none_packed),
        cmocka_unit_test(test_full_cache),
        cmocka_unit_test(test_kv_types),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_16_bit_activations),
        cmocka_unit_test(test_likelihood),
        cmocka_unit_test(test_perplexity),
    };
    return cmocka_run_group_tests_name("llama", tests, bard_open, bard_close);
}
