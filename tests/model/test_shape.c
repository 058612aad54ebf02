/* SPDX-License-Identifier: MIT */
/* test_shape.c - the metadata of a model file: files of the format that are not a whole model, and
 * keys that a reader must not pass over. */
#include "blob.h"
#include "model/gguf/model_file.h"
#include "model/gguf/quantize.h"
#include "model/gguf/shape.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LAYERS = 2 };

/* Pairs beside those of a small model, or instead of the one with the key `without`. */
struct extra {
    const char *without;
    struct blob pairs;
    uint64_t count;
};

static void put_count(struct blob *blob, const char *key, uint32_t value)
{
    put_key(blob, key, GGUF_U32);
    put_u32(blob, value);
}

static void add_count(struct extra *extra, const char *key, uint32_t value)
{
    put_count(&extra->pairs, key, value);
    extra->count++;
}

static void add_text(struct extra *extra, const char *key, const char *value)
{
    put_key(&extra->pairs, key, GGUF_STRING);
    put_string(&extra->pairs, value);
    extra->count++;
}

/* A file of the metadata of a llama and one tensor. `extra` is freed. */
static struct blob put_model(struct extra *extra)
{
    static const struct {
        const char *key;
        uint32_t value;
    } counts[] = {
        { "llama.block_count", LAYERS },     { "llama.context_length", 64 },
        { "llama.embedding_length", 32 },    { "llama.feed_forward_length", 48 },
        { "llama.attention.head_count", 4 }, { "llama.attention.head_count_kv", 2 },
        { "llama.attention.key_length", 8 }, { "llama.attention.value_length", 8 },
        { "llama.rope.dimension_count", 8 },
    };
    enum { ROWS = sizeof counts / sizeof *counts };
    struct blob pairs = { 0 }, blob = { 0 };
    uint64_t count = extra->count;
    const struct {
        const char *key;
        uint32_t kind;
    } others[] = { { "general.architecture", GGUF_STRING },
                   { "llama.attention.layer_norm_rms_epsilon", GGUF_F32 } };
    for (size_t i = 0; i < ROWS + 2; i++) {
        const char *key = i < ROWS ? counts[i].key : others[i - ROWS].key;
        if (extra->without && strcmp(extra->without, key) == 0)
            continue;
        count++;
        if (i < ROWS) {
            put_count(&pairs, key, counts[i].value);
            continue;
        }
        put_key(&pairs, key, others[i - ROWS].kind);
        if (others[i - ROWS].kind == GGUF_STRING)
            put_string(&pairs, "llama");
        else
            put_f32(&pairs, 1e-5F);
    }
    put_header(&blob, 1, count);
    put(&blob, pairs.bytes, pairs.size);
    put(&blob, extra->pairs.bytes, extra->pairs.size);
    put_tensor(&blob, "token_embd.weight", 2, (const uint64_t[]){ 32, 3 }, GGUF_TYPE_Q8_0,
               0);
    pad(&blob, 32);
    for (int i = 0; i < 3 * 34; i++)
        put_u8(&blob, 0);
    free(pairs.bytes);
    free(extra->pairs.bytes);
    *extra = (struct extra){ 0 };
    return blob;
}

/* Reads the model with `extra`; `words` are in the reason, or NULL if it is accepted. */
static struct shape read_model(struct extra *extra, const char *words)
{
    struct fault why = { "" };
    struct shape shape;
    struct blob blob = put_model(extra);
    struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    if (!file)
        fail_msg("%s", why.text);
    const bool good = shape_read(file, &shape, &why);
    if (good != !words ||
        (words && (!strstr(why.text, words) || strncmp(why.text, "some.gguf: ", 11) != 0)))
        fail_msg("expected '%s', got: %s", words ? words : "(accepted)",
                 good ? "(accepted)" : why.text);
    gguf_close(file);
    free(blob.bytes);
    return shape;
}

static void test_small_model(void **state)
{
    (void)state;
    struct extra none = { 0 };
    const struct shape shape = read_model(&none, NULL);
    assert_int_equal(shape.layers, LAYERS);
    assert_int_equal(shape.heads, 4);
    assert_int_equal(shape.kv_heads, 2);
    assert_int_equal(shape.inner, 48);
}

/* ---- Numbers for each layer ---------------------------------------------------------- */

/* An array of i32 instead of the number of a key. */
static void put_each(struct extra *extra, const char *key, const int32_t *values,
                     uint64_t count)
{
    extra->without = key;
    put_key(&extra->pairs, key, GGUF_ARRAY);
    put_u32(&extra->pairs, GGUF_I32);
    put_u64(&extra->pairs, count);
    put(&extra->pairs, values, count * sizeof *values);
    extra->count++;
}

static void test_equal_layers(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int32_t value;
    } rows[] = {
        { "llama.attention.head_count", 4 },     { "llama.attention.head_count_kv", 1 },
        { "llama.feed_forward_length", 40 },     { "llama.attention.key_length", 8 },
        { "llama.attention.value_length", 8 },   { "llama.rope.dimension_count", 8 },
        { "llama.attention.sliding_window", 7 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int32_t values[] = { rows[i].value, rows[i].value };
        struct extra extra = { 0 };
        put_each(&extra, rows[i].key, values, LAYERS);
        const struct shape shape = read_model(&extra, NULL);
        assert_int_equal(shape.kv_heads, i == 1 ? 1 : 2);
        assert_int_equal(shape.inner, i == 2 ? 40 : 48);
        assert_int_equal(shape.window, i == 6 ? 7 : 0);
    }
    struct extra reals = { .without = "llama.attention.layer_norm_rms_epsilon" };
    put_key(&reals.pairs, reals.without, GGUF_ARRAY);
    put_u32(&reals.pairs, GGUF_F32);
    put_u64(&reals.pairs, LAYERS);
    put_f32(&reals.pairs, 0.25F);
    put_f32(&reals.pairs, 0.25F);
    reals.count = 1;
    assert_true(read_model(&reals, NULL).eps == 0.25F);
}

static void test_unequal_layers(void **state)
{
    (void)state;
    static const int32_t values[] = { 2, 1, 1 };
    static const struct {
        const char *key;
        uint64_t count;
        const char *words;
    } rows[] = {
        { "llama.attention.head_count_kv", 2,
          "differs between layers 0 and 1, which is not supported; use a model whose" },
        { "llama.feed_forward_length", 3, "is an array of 3, must be one number, or one" },
        { "llama.feed_forward_length", 1, "or one for each of the 2 layers" },
        { "llama.feed_forward_length", 0, "is an array of 0, must be one number" },
        { "llama.block_count", 1, "is an array, must be an integer" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct extra extra = { 0 };
        put_each(&extra, rows[i].key, values, rows[i].count);
        read_model(&extra, rows[i].words);
    }
    struct extra texts = { .without = "llama.feed_forward_length", .count = 1 };
    put_key(&texts.pairs, texts.without, GGUF_ARRAY);
    put_u32(&texts.pairs, GGUF_STRING);
    put_u64(&texts.pairs, 1);
    put_string(&texts.pairs, "48");
    read_model(&texts, "is an array, must be an integer");
}

/* ---- Keys that change what is computed ------------------------------------------------ */

struct value {
    uint32_t kind; /* F32, BOOL, U32, STRING; of the elements, if there are two of them */
    double number;
    const char *text;
    bool twice;
};

static void put_value(struct extra *extra, const char *key, const struct value *value)
{
    struct blob *blob = &extra->pairs;
    put_key(blob, key, value->twice ? GGUF_ARRAY : value->kind);
    if (value->twice) {
        put_u32(blob, value->kind);
        put_u64(blob, 2);
    }
    for (int i = 0; i < 1 + value->twice; i++)
        if (value->kind == GGUF_F32)
            put_f32(blob, (float)value->number);
        else if (value->kind == GGUF_U32)
            put_u32(blob, (uint32_t)value->number);
        else if (value->kind == GGUF_BOOL)
            put_u8(blob, value->number != 0);
        else
            put_string(blob, value->text);
    extra->count++;
}

#define REAL(x)                                                                            \
    {                                                                                      \
        GGUF_F32, x, NULL, false                                                           \
    }
#define TRUTH(x)                                                                           \
    {                                                                                      \
        GGUF_BOOL, x, NULL, false                                                          \
    }
#define COUNT(x)                                                                           \
    {                                                                                      \
        GGUF_U32, x, NULL, false                                                           \
    }
#define TEXT(x)                                                                            \
    {                                                                                      \
        GGUF_STRING, 0, x, false                                                           \
    }
#define REALS(x)                                                                           \
    {                                                                                      \
        GGUF_F32, x, NULL, true                                                            \
    }
#define TRUTHS(x)                                                                          \
    {                                                                                      \
        GGUF_BOOL, x, NULL, true                                                           \
    }
#define COUNTS(x)                                                                          \
    {                                                                                      \
        GGUF_U32, x, NULL, true                                                            \
    }

static void test_keys(void **state)
{
    (void)state;
    static const char other[] = "is not supported with this value, and may change";
    static const struct {
        const char *key;
        struct value value;
        const char *words; /* NULL: it changes nothing */
    } rows[] = {
        { "llama.attention.causal", TRUTH(1), NULL },
        { "llama.attention.causal", TRUTH(0), "'llama.attention.causal' is false, and" },
        { "llama.attention.causal", COUNT(1), "is a u32, must be bool" },
        { "llama.use_parallel_residual", TRUTH(1), other },
        { "llama.use_parallel_residual", TRUTH(0), NULL },
        { "llama.attention.max_alibi_bias", REAL(8), other },
        { "llama.attention.max_alibi_bias", REAL(0), NULL },
        { "llama.attention.clamp_kqv", REAL(8), other },
        { "llama.attention.clamp_kqv", REAL(1e-7), other },
        { "llama.attention.scale", REAL(0.25), other },
        { "llama.attention.scale", REAL(0.35355338), NULL }, /* 1 / sqrt(8) */
        { "llama.attention.temperature_scale", REAL(0.1), other },
        { "llama.attention.shared_kv_layers", COUNT(1), other },
        { "llama.attention.sliding_window_pattern", TRUTHS(0), NULL },
        { "llama.logit_scale", REAL(0.5), other },
        { "llama.logit_scale", REAL(1), NULL },
        { "llama.embedding_scale", REAL(12), other },
        { "llama.residual_scale", REALS(1), NULL },
        { "llama.swiglu_clamp_exp", REALS(0), NULL },
        { "llama.swiglu_clamp_exp", REALS(7), other },
        { "llama.final_logit_softcapping", REAL(30), other },
        { "llama.rope.dimension_sections", COUNTS(2), other },
        { "llama.rope.dimension_sections", COUNTS(0), NULL },
        { "llama.rope.scaling.alpha", REAL(1000), other },
        { "llama.rope.scaling.finetuned", TRUTH(1), NULL },
        { "llama.tensor_data_layout", TEXT("Meta AI original pth"), NULL },
        { "llama.tensor_data_layout", TEXT("transposed"), other },
        { "llama.pooling_type", COUNT(3), NULL },
        { "llama.expert_used_count", COUNT(2), NULL },
        { "llama.made_up", TEXT(""), other },
        { "qwen2.made_up", TEXT(""), NULL }, /* of another architecture */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct extra extra = { 0 };
        put_value(&extra, rows[i].key, &rows[i].value);
        read_model(&extra, rows[i].words);
    }
}

/* With a window, whatever is said about only some of the layers matters. */
static void test_window_keys(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        struct value value;
        bool good;
    } rows[] = {
        { "llama.attention.sliding_window_pattern", TRUTHS(1), true },
        { "llama.attention.sliding_window_pattern", TRUTHS(0), false },
        { "llama.attention.sliding_window_pattern", COUNT(2), false },
        { "llama.attention.sliding_window_pattern", COUNT(0), false },
        { "llama.rope.freq_base_swa", REAL(1000), false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct extra extra = { 0 };
        add_count(&extra, "llama.attention.sliding_window", 16);
        put_value(&extra, rows[i].key, &rows[i].value);
        read_model(&extra, rows[i].good ? NULL : "is not supported with this value");
    }
}

/* ---- Files that are not a whole model ------------------------------------------------ */

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        uint32_t number, count;
        const char *words; /* NULL: a whole model */
    } rows[] = {
        { 0, 0, NULL }, /* as a file that was joined has it */
        { 0, 1, NULL },
        { 0, 2, "is part 1 of 2 of a split model, and hw reads models in one file; join" },
        { 6, 7, "is part 7 of 7 of a split model" },
        { 7, 7, "is one of 7 parts of a split model" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct extra extra = { 0 };
        add_count(&extra, "split.no", rows[i].number);
        add_count(&extra, "split.count", rows[i].count);
        read_model(&extra, rows[i].words);
    }
    struct extra unnumbered = { 0 }, text = { 0 };
    add_count(&unnumbered, "split.count", 3);
    read_model(&unnumbered, "is one of 3 parts of a split model");
    add_text(&text, "split.count", "2");
    read_model(&text, "key 'split.count'");
}

/* A later part has no key of the model, and is not quantized by itself either. */
static void test_later_part(void **state)
{
    (void)state;
    struct blob blob = { 0 };
    struct fault why = { "" };
    struct shape shape;
    struct quantize_plan plan;
    put_header(&blob, 0, 2);
    put_count(&blob, "split.no", 1);
    put_count(&blob, "split.count", 2);
    struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    assert_non_null(file);
    assert_false(shape_read(file, &shape, &why));
    assert_non_null(strstr(why.text, "some.gguf: is part 2 of 2 of a split model"));
    why.text[0] = '\0';
    assert_false(quantize_decide(file, recipe_find("q8_0"), false, &plan, &why));
    assert_non_null(strstr(why.text, "some.gguf: is part 2 of 2 of a split model"));
    quantize_free(&plan);
    gguf_close(file);
    free(blob.bytes);
}

static void test_not_a_model(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *words;
    } rows[] = {
        { "general.type", "model", NULL },
        { "general.type", "adapter", "'general.type' is 'adapter': it is merged into" },
        { "general.type", "mmproj", "is 'mmproj': it reads images or sound for a model" },
        { "general.type", "imatrix", "is 'imatrix': it has statistics for quantizing" },
        { "general.type", "a\tb", "is 'a\\x09b': use the file of a model" },
        { "adapter.type", "lora", "is not a model by itself" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct extra extra = { 0 };
        add_text(&extra, rows[i].key, rows[i].value);
        read_model(&extra, rows[i].words);
    }
}

/* A vocabulary without a model has all keys. */
static void test_no_tensors(void **state)
{
    (void)state;
    struct fault why = { "" };
    struct shape shape;
    struct extra none = { 0 };
    struct blob blob = put_model(&none);
    const uint64_t zero = 0;
    memcpy(blob.bytes + 8, &zero, sizeof zero);
    struct gguf *file = gguf_parse(blob.bytes, blob.size, "some.gguf", &why);
    assert_non_null(file);
    assert_false(shape_read(file, &shape, &why));
    assert_non_null(strstr(why.text, "some.gguf: has no tensors, only metadata; use"));
    gguf_close(file);
    free(blob.bytes);
}

static void test_block_version(void **state)
{
    (void)state;
    struct extra old = { 0 }, same = { 0 };
    add_count(&old, "general.quantization_version", 1);
    read_model(&old, "'general.quantization_version' is 1, only version 2 is supported");
    add_count(&same, "general.quantization_version", 2);
    read_model(&same, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_model),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_later_part),   cmocka_unit_test(test_not_a_model),
        cmocka_unit_test(test_no_tensors),   cmocka_unit_test(test_block_version),
        cmocka_unit_test(test_equal_layers), cmocka_unit_test(test_unequal_layers),
        cmocka_unit_test(test_keys),         cmocka_unit_test(test_window_keys),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
